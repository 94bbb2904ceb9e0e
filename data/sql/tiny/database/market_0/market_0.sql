BEGIN TRANSACTION;

CREATE TABLE customers (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  salary INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO customers VALUES
  ('adams', 'blue', 46, 83),
  ('baker', 'red', 62, 87),
  ('clark', 'green', 50, 11),
  ('davis', 'blue', 49, 62),
  ('evans', 'blue', 43, 66),
  ('ford', 'red', 32, 80),
  ('grant', 'blue', 32, 7),
  ('hill', 'green', 36, 38);

CREATE TABLE devices (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  points INTEGER NOT NULL,
  credits INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('lamp', 'oslo', 85, 9),
  ('chair', 'rome', 19, 1),
  ('desk', 'oslo', 49, 5),
  ('mug', 'rome', 56, 11),
  ('sofa', 'oslo', 69, 7),
  ('rug', 'oslo', 7, 12),
  ('vase', 'paris', 76, 12),
  ('clock', 'paris', 89, 3),
  ('shelf', 'rome', 50, 7),
  ('bed', 'paris', 74, 12);

CREATE TABLE courses (
  status TEXT NOT NULL,
  weight INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('paid', 24, 12),
  ('sent', 27, 16),
  ('paid', 17, 10),
  ('open', 43, 54),
  ('paid', 60, 66),
  ('sent', 47, 48),
  ('open', 7, 66),
  ('paid', 8, 36),
  ('sent', 22, 70),
  ('open', 31, 13),
  ('paid', 48, 39),
  ('paid', 34, 62);

COMMIT;
