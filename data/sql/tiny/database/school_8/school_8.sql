BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'blue', 14, 33),
  ('leo', 'green', 10, 93),
  ('mia', 'red', 11, 78),
  ('noah', 'blue', 18, 94),
  ('olga', 'red', 13, 31),
  ('paul', 'blue', 13, 59),
  ('rita', 'blue', 14, 84),
  ('sam', 'green', 18, 87),
  ('tara', 'green', 12, 85),
  ('uma', 'red', 13, 94);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'math', 81, 5),
  ('baker', 'math', 63, 8),
  ('clark', 'music', 86, 21),
  ('davis', 'math', 48, 21),
  ('evans', 'music', 81, 4),
  ('ford', 'art', 48, 12),
  ('grant', 'music', 62, 29),
  ('hill', 'art', 44, 28);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('hard', 1, 18),
  ('easy', 3, 28),
  ('medium', 11, 32),
  ('easy', 8, 28),
  ('hard', 6, 24),
  ('hard', 11, 52),
  ('easy', 2, 44),
  ('medium', 3, 28),
  ('easy', 6, 48),
  ('hard', 3, 40),
  ('hard', 7, 12),
  ('medium', 11, 31),
  ('medium', 6, 40),
  ('hard', 6, 40),
  ('hard', 10, 33),
  ('hard', 5, 13),
  ('medium', 4, 47),
  ('medium', 1, 59);

COMMIT;
