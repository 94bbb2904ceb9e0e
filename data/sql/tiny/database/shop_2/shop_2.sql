BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'office', 68, 34),
  ('chair', 'office', 19, 6),
  ('desk', 'office', 66, 53),
  ('mug', 'home', 45, 55),
  ('sofa', 'home', 30, 2),
  ('rug', 'garden', 69, 33),
  ('vase', 'garden', 25, 29),
  ('clock', 'office', 27, 24),
  ('shelf', 'garden', 14, 8),
  ('bed', 'office', 65, 47);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'rome', 64, 74),
  ('ben', 'paris', 38, 11),
  ('carl', 'rome', 68, 2),
  ('dora', 'paris', 65, 14),
  ('eva', 'rome', 48, 92),
  ('finn', 'oslo', 61, 64),
  ('gina', 'paris', 63, 14),
  ('hugo', 'rome', 76, 11),
  ('ivan', 'rome', 34, 75),
  ('jane', 'oslo', 20, 33);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('sent', 62, 6),
  ('open', 79, 7),
  ('open', 44, 26),
  ('sent', 84, 19),
  ('sent', 78, 8),
  ('sent', 99, 15),
  ('open', 81, 2),
  ('paid', 78, 22),
  ('sent', 65, 30),
  ('open', 79, 23),
  ('paid', 58, 19),
  ('paid', 21, 22),
  ('sent', 23, 15),
  ('sent', 40, 12);

COMMIT;
