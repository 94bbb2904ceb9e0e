BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'red', 11, 98),
  ('leo', 'red', 14, 27),
  ('mia', 'green', 14, 65),
  ('noah', 'blue', 10, 94),
  ('olga', 'red', 16, 94),
  ('paul', 'red', 16, 71),
  ('rita', 'green', 15, 87),
  ('sam', 'green', 16, 99),
  ('tara', 'red', 17, 21),
  ('uma', 'blue', 19, 90);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'music', 67, 40),
  ('baker', 'art', 32, 26),
  ('clark', 'music', 86, 13),
  ('davis', 'art', 77, 7),
  ('evans', 'art', 38, 24),
  ('ford', 'music', 56, 29),
  ('grant', 'math', 88, 21),
  ('hill', 'math', 88, 13);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('easy', 11, 16),
  ('hard', 8, 52),
  ('easy', 11, 40),
  ('medium', 2, 49),
  ('easy', 6, 58),
  ('medium', 7, 39),
  ('medium', 2, 45),
  ('medium', 1, 34),
  ('easy', 12, 35),
  ('hard', 12, 17),
  ('easy', 3, 50),
  ('medium', 3, 8),
  ('hard', 11, 55),
  ('hard', 1, 9),
  ('medium', 4, 26);

COMMIT;
