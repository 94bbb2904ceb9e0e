BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'office', 17, 35),
  ('chair', 'garden', 71, 33),
  ('desk', 'garden', 70, 21),
  ('mug', 'office', 67, 17),
  ('sofa', 'home', 21, 22),
  ('rug', 'home', 46, 40),
  ('vase', 'garden', 18, 48),
  ('clock', 'garden', 29, 51),
  ('shelf', 'garden', 53, 39),
  ('bed', 'home', 26, 48);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'paris', 67, 77),
  ('ben', 'oslo', 58, 64),
  ('carl', 'rome', 58, 55),
  ('dora', 'paris', 47, 80),
  ('eva', 'rome', 21, 87),
  ('finn', 'paris', 48, 29),
  ('gina', 'oslo', 44, 64),
  ('hugo', 'rome', 28, 62),
  ('ivan', 'oslo', 20, 85),
  ('jane', 'paris', 52, 29);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('paid', 28, 27),
  ('paid', 75, 8),
  ('paid', 67, 14),
  ('paid', 24, 25),
  ('paid', 21, 14),
  ('sent', 76, 4),
  ('paid', 65, 8),
  ('open', 35, 3),
  ('sent', 74, 22),
  ('sent', 74, 22),
  ('paid', 34, 20),
  ('open', 61, 20),
  ('open', 13, 7),
  ('paid', 16, 4),
  ('sent', 15, 12),
  ('open', 14, 26),
  ('open', 51, 7),
  ('paid', 51, 8),
  ('open', 72, 24),
  ('sent', 56, 14);

COMMIT;
