BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'home', 90, 7),
  ('chair', 'office', 26, 26),
  ('desk', 'home', 50, 49),
  ('mug', 'office', 67, 5),
  ('sofa', 'office', 13, 30),
  ('rug', 'garden', 93, 29),
  ('vase', 'garden', 49, 14),
  ('clock', 'home', 21, 58),
  ('shelf', 'office', 89, 8),
  ('bed', 'garden', 6, 26);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'paris', 37, 81),
  ('ben', 'paris', 31, 65),
  ('carl', 'paris', 23, 56),
  ('dora', 'oslo', 32, 26),
  ('eva', 'rome', 43, 31),
  ('finn', 'oslo', 32, 2),
  ('gina', 'rome', 62, 86),
  ('hugo', 'rome', 62, 57),
  ('ivan', 'oslo', 42, 0),
  ('jane', 'rome', 69, 71);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('open', 24, 30),
  ('sent', 83, 15),
  ('paid', 38, 18),
  ('sent', 69, 2),
  ('open', 11, 19),
  ('paid', 70, 9),
  ('paid', 75, 1),
  ('open', 94, 25),
  ('sent', 92, 28),
  ('open', 76, 5);

COMMIT;
