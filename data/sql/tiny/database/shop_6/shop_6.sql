BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'home', 44, 36),
  ('chair', 'home', 89, 22),
  ('desk', 'office', 17, 0),
  ('mug', 'office', 46, 10),
  ('sofa', 'garden', 77, 52),
  ('rug', 'office', 44, 30),
  ('vase', 'office', 87, 56),
  ('clock', 'garden', 45, 7),
  ('shelf', 'home', 40, 13),
  ('bed', 'garden', 41, 44);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'oslo', 19, 22),
  ('ben', 'rome', 22, 10),
  ('carl', 'paris', 24, 35),
  ('dora', 'rome', 51, 21),
  ('eva', 'oslo', 67, 5),
  ('finn', 'paris', 66, 65),
  ('gina', 'rome', 43, 46),
  ('hugo', 'rome', 33, 63),
  ('ivan', 'oslo', 27, 28),
  ('jane', 'paris', 69, 96);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('sent', 26, 20),
  ('open', 40, 8),
  ('open', 21, 13),
  ('paid', 41, 3),
  ('sent', 68, 11),
  ('open', 78, 20),
  ('sent', 27, 14),
  ('sent', 14, 12),
  ('paid', 35, 2),
  ('open', 88, 12),
  ('paid', 91, 30),
  ('sent', 17, 18),
  ('sent', 22, 29),
  ('paid', 83, 14),
  ('sent', 82, 9),
  ('paid', 75, 28),
  ('paid', 33, 18);

COMMIT;
