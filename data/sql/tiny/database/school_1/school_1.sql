BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'red', 11, 24),
  ('leo', 'blue', 17, 96),
  ('mia', 'red', 12, 46),
  ('noah', 'green', 12, 57),
  ('olga', 'blue', 10, 27),
  ('paul', 'red', 11, 95),
  ('rita', 'green', 19, 47),
  ('sam', 'blue', 14, 97),
  ('tara', 'red', 15, 84),
  ('uma', 'green', 13, 73);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'music', 70, 8),
  ('baker', 'math', 59, 21),
  ('clark', 'art', 78, 7),
  ('davis', 'music', 80, 14),
  ('evans', 'music', 73, 29),
  ('ford', 'art', 57, 33),
  ('grant', 'math', 45, 38),
  ('hill', 'music', 55, 31);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('easy', 3, 22),
  ('medium', 10, 29),
  ('easy', 5, 21),
  ('medium', 9, 25),
  ('hard', 12, 42),
  ('easy', 6, 19),
  ('medium', 5, 16),
  ('medium', 12, 18),
  ('medium', 10, 59),
  ('hard', 4, 46),
  ('hard', 5, 23),
  ('medium', 2, 58),
  ('easy', 9, 29),
  ('hard', 10, 57),
  ('medium', 8, 44),
  ('hard', 6, 13),
  ('medium', 5, 16);

COMMIT;
