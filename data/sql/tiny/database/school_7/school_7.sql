BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'green', 14, 78),
  ('leo', 'blue', 13, 99),
  ('mia', 'red', 16, 62),
  ('noah', 'blue', 16, 91),
  ('olga', 'green', 12, 75),
  ('paul', 'red', 14, 80),
  ('rita', 'green', 13, 56),
  ('sam', 'blue', 15, 54),
  ('tara', 'red', 17, 89),
  ('uma', 'green', 15, 74);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'art', 30, 6),
  ('baker', 'music', 87, 36),
  ('clark', 'math', 35, 33),
  ('davis', 'music', 75, 15),
  ('evans', 'music', 61, 6),
  ('ford', 'math', 78, 15),
  ('grant', 'art', 57, 38),
  ('hill', 'math', 69, 29);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('medium', 5, 31),
  ('medium', 3, 16),
  ('hard', 9, 25),
  ('hard', 5, 48),
  ('hard', 4, 15),
  ('easy', 7, 29),
  ('easy', 8, 58),
  ('easy', 12, 34),
  ('hard', 11, 29),
  ('easy', 10, 28),
  ('hard', 10, 56),
  ('hard', 11, 18),
  ('hard', 8, 53),
  ('easy', 4, 28),
  ('easy', 3, 47),
  ('hard', 10, 43),
  ('hard', 8, 36),
  ('medium', 3, 25),
  ('medium', 11, 9);

COMMIT;
