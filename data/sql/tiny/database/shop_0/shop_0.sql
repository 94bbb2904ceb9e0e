BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'home', 92, 9),
  ('chair', 'office', 91, 30),
  ('desk', 'office', 12, 33),
  ('mug', 'office', 70, 35),
  ('sofa', 'office', 73, 60),
  ('rug', 'home', 85, 13),
  ('vase', 'garden', 73, 48),
  ('clock', 'garden', 33, 6),
  ('shelf', 'garden', 60, 18),
  ('bed', 'home', 80, 43);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'rome', 63, 70),
  ('ben', 'paris', 42, 6),
  ('carl', 'oslo', 28, 64),
  ('dora', 'oslo', 55, 90),
  ('eva', 'rome', 76, 67),
  ('finn', 'rome', 68, 12),
  ('gina', 'oslo', 62, 68),
  ('hugo', 'oslo', 53, 93),
  ('ivan', 'rome', 30, 90),
  ('jane', 'paris', 54, 52);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('open', 72, 30),
  ('paid', 76, 18),
  ('paid', 18, 24),
  ('open', 79, 26),
  ('sent', 18, 10),
  ('paid', 87, 2),
  ('paid', 22, 25),
  ('open', 33, 23),
  ('sent', 95, 27),
  ('sent', 39, 28),
  ('sent', 91, 8),
  ('sent', 45, 20),
  ('open', 95, 30),
  ('open', 50, 7),
  ('paid', 91, 18),
  ('paid', 92, 21),
  ('sent', 83, 29),
  ('sent', 21, 18),
  ('open', 81, 3),
  ('sent', 85, 6);

COMMIT;
