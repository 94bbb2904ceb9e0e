BEGIN TRANSACTION;

CREATE TABLE products (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  stock INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('lamp', 'home', 40, 51),
  ('chair', 'garden', 70, 55),
  ('desk', 'home', 25, 10),
  ('mug', 'garden', 93, 2),
  ('sofa', 'office', 27, 40),
  ('rug', 'office', 45, 4),
  ('vase', 'garden', 89, 53),
  ('clock', 'office', 67, 26),
  ('shelf', 'garden', 54, 5),
  ('bed', 'garden', 79, 48);

CREATE TABLE customers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  age INTEGER NOT NULL,
  points INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('anna', 'oslo', 42, 25),
  ('ben', 'oslo', 24, 35),
  ('carl', 'paris', 65, 39),
  ('dora', 'rome', 24, 76),
  ('eva', 'paris', 67, 48),
  ('finn', 'rome', 50, 99),
  ('gina', 'oslo', 59, 56),
  ('hugo', 'rome', 63, 77),
  ('ivan', 'paris', 56, 42),
  ('jane', 'oslo', 40, 43);

CREATE TABLE orders (
  status TEXT NOT NULL,
  amount INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('open', 25, 20),
  ('sent', 81, 16),
  ('paid', 31, 2),
  ('paid', 13, 17),
  ('sent', 36, 23),
  ('open', 73, 3),
  ('open', 19, 23),
  ('paid', 50, 9),
  ('sent', 91, 11),
  ('sent', 12, 23),
  ('open', 98, 18),
  ('open', 73, 1),
  ('paid', 72, 13),
  ('sent', 54, 30),
  ('sent', 74, 13),
  ('open', 60, 27),
  ('paid', 95, 3),
  ('open', 69, 4),
  ('paid', 64, 25);

COMMIT;
