BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'garden', 68, 13),
  ('chair', 'office', 5, 15),
  ('desk', 'home', 54, 48),
  ('mug', 'home', 74, 19),
  ('sofa', 'garden', 14, 32),
  ('rug', 'office', 17, 48),
  ('vase', 'office', 77, 58),
  ('clock', 'office', 53, 58),
  ('shelf', 'office', 8, 15),
  ('bed', 'garden', 82, 38);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'oslo', 37, 88),
  ('ben', 'paris', 45, 63),
  ('carl', 'rome', 51, 65),
  ('dora', 'rome', 40, 88),
  ('eva', 'oslo', 52, 64),
  ('finn', 'oslo', 23, 55),
  ('gina', 'rome', 24, 61),
  ('hugo', 'paris', 18, 33),
  ('ivan', 'oslo', 21, 29),
  ('jane', 'oslo', 54, 68);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('paid', 52, 29),
  ('sent', 63, 29),
  ('open', 92, 10),
  ('open', 29, 12),
  ('sent', 97, 24),
  ('open', 73, 30),
  ('paid', 45, 3),
  ('sent', 14, 25),
  ('sent', 10, 3),
  ('paid', 25, 20),
  ('paid', 36, 1),
  ('open', 83, 22),
  ('sent', 92, 9),
  ('paid', 37, 29),
  ('paid', 67, 9),
  ('paid', 46, 8),
  ('open', 85, 1);

COMMIT;
