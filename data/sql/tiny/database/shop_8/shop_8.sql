BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'office', 52, 15),
  ('chair', 'garden', 14, 23),
  ('desk', 'garden', 87, 58),
  ('mug', 'office', 24, 56),
  ('sofa', 'office', 8, 52),
  ('rug', 'home', 31, 29),
  ('vase', 'office', 18, 53),
  ('clock', 'home', 74, 17),
  ('shelf', 'home', 99, 16),
  ('bed', 'home', 90, 49);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'rome', 75, 32),
  ('ben', 'oslo', 42, 83),
  ('carl', 'oslo', 50, 63),
  ('dora', 'paris', 36, 82),
  ('eva', 'paris', 24, 26),
  ('finn', 'oslo', 19, 8),
  ('gina', 'paris', 28, 91),
  ('hugo', 'paris', 32, 29),
  ('ivan', 'rome', 51, 94),
  ('jane', 'rome', 50, 8);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('paid', 35, 11),
  ('open', 99, 12),
  ('open', 58, 25),
  ('sent', 94, 29),
  ('paid', 25, 19),
  ('sent', 29, 7),
  ('sent', 91, 4),
  ('open', 34, 24),
  ('paid', 19, 2),
  ('open', 46, 11),
  ('sent', 46, 19),
  ('paid', 17, 26),
  ('open', 75, 30),
  ('paid', 60, 14),
  ('open', 11, 16);

COMMIT;
