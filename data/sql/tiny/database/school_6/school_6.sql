BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'green', 14, 30),
  ('leo', 'red', 19, 82),
  ('mia', 'green', 12, 35),
  ('noah', 'blue', 18, 93),
  ('olga', 'red', 14, 87),
  ('paul', 'red', 12, 37),
  ('rita', 'red', 15, 74),
  ('sam', 'green', 18, 90),
  ('tara', 'blue', 15, 24),
  ('uma', 'red', 18, 35);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'art', 68, 21),
  ('baker', 'music', 45, 36),
  ('clark', 'music', 43, 6),
  ('davis', 'math', 44, 6),
  ('evans', 'math', 88, 2),
  ('ford', 'art', 78, 13),
  ('grant', 'music', 61, 33),
  ('hill', 'art', 39, 32);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('easy', 10, 29),
  ('easy', 1, 43),
  ('hard', 3, 17),
  ('medium', 4, 13),
  ('hard', 12, 43),
  ('hard', 8, 33),
  ('easy', 5, 55),
  ('medium', 9, 39),
  ('easy', 2, 32),
  ('hard', 8, 55),
  ('easy', 9, 50),
  ('hard', 1, 29);

COMMIT;
