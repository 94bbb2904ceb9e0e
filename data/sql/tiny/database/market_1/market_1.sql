BEGIN TRANSACTION;

CREATE TABLE customers (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  salary INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('adams', 'red', 68, 3),
  ('baker', 'blue', 80, 23),
  ('clark', 'green', 68, 64),
  ('davis', 'blue', 76, 2),
  ('evans', 'red', 56, 83),
  ('ford', 'red', 82, 58),
  ('grant', 'green', 79, 32),
  ('hill', 'red', 82, 76);

CREATE TABLE devices (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  points INTEGER NOT NULL,
  credits INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('lamp', 'oslo', 68, 10),
  ('chair', 'paris', 43, 12),
  ('desk', 'rome', 41, 11),
  ('mug', 'oslo', 67, 9),
  ('sofa', 'oslo', 85, 2),
  ('rug', 'paris', 27, 8),
  ('vase', 'rome', 22, 2),
  ('clock', 'oslo', 10, 12),
  ('shelf', 'rome', 48, 11),
  ('bed', 'rome', 89, 9);

CREATE TABLE courses (
  status TEXT NOT NULL,
  weight INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('sent', 14, 95),
  ('sent', 29, 52),
  ('sent', 53, 43),
  ('paid', 50, 60),
  ('sent', 65, 35),
  ('open', 25, 97),
  ('sent', 58, 74),
  ('sent', 63, 46),
  ('paid', 14, 86),
  ('paid', 11, 57),
  ('sent', 47, 75),
  ('open', 62, 21),
  ('sent', 21, 90),
  ('open', 31, 23);

COMMIT;
