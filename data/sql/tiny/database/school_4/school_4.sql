BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'red', 12, 65),
  ('leo', 'green', 19, 27),
  ('mia', 'green', 12, 84),
  ('noah', 'green', 12, 66),
  ('olga', 'green', 15, 43),
  ('paul', 'red', 17, 80),
  ('rita', 'blue', 11, 75),
  ('sam', 'blue', 10, 69),
  ('tara', 'green', 15, 25),
  ('uma', 'red', 15, 38);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'music', 48, 1),
  ('baker', 'math', 30, 25),
  ('clark', 'music', 43, 7),
  ('davis', 'math', 58, 3),
  ('evans', 'art', 49, 2),
  ('ford', 'art', 77, 5),
  ('grant', 'music', 82, 25),
  ('hill', 'math', 46, 25);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('medium', 4, 20),
  ('easy', 1, 41),
  ('medium', 11, 17),
  ('easy', 2, 60),
  ('easy', 3, 8),
  ('easy', 9, 49),
  ('medium', 7, 10),
  ('easy', 10, 39),
  ('medium', 3, 36),
  ('hard', 4, 40),
  ('hard', 4, 33),
  ('medium', 11, 26),
  ('easy', 7, 44),
  ('medium', 1, 40),
  ('medium', 12, 37),
  ('hard', 6, 15),
  ('easy', 12, 28),
  ('hard', 8, 44),
  ('easy', 8, 51);

COMMIT;
