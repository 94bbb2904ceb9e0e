BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'garden', 90, 49),
  ('chair', 'home', 50, 5),
  ('desk', 'home', 10, 33),
  ('mug', 'office', 74, 14),
  ('sofa', 'garden', 28, 2),
  ('rug', 'home', 11, 31),
  ('vase', 'garden', 53, 57),
  ('clock', 'home', 93, 8),
  ('shelf', 'office', 58, 28),
  ('bed', 'office', 32, 16);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'rome', 51, 3),
  ('ben', 'paris', 21, 56),
  ('carl', 'oslo', 67, 57),
  ('dora', 'paris', 25, 79),
  ('eva', 'rome', 71, 2),
  ('finn', 'paris', 22, 35),
  ('gina', 'paris', 27, 13),
  ('hugo', 'oslo', 64, 41),
  ('ivan', 'oslo', 73, 25),
  ('jane', 'rome', 23, 86);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('sent', 33, 20),
  ('open', 61, 28),
  ('open', 62, 13),
  ('sent', 63, 13),
  ('paid', 18, 24),
  ('open', 14, 3),
  ('open', 22, 3),
  ('paid', 80, 16),
  ('sent', 55, 9),
  ('sent', 89, 11),
  ('sent', 15, 18),
  ('paid', 78, 1),
  ('open', 19, 14);

COMMIT;
