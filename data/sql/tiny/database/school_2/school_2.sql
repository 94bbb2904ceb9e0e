BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'green', 15, 34),
  ('leo', 'green', 13, 26),
  ('mia', 'green', 12, 28),
  ('noah', 'blue', 14, 82),
  ('olga', 'red', 17, 23),
  ('paul', 'blue', 17, 54),
  ('rita', 'red', 16, 41),
  ('sam', 'green', 11, 30),
  ('tara', 'blue', 15, 51),
  ('uma', 'green', 10, 54);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'math', 56, 15),
  ('baker', 'math', 40, 32),
  ('clark', 'music', 48, 22),
  ('davis', 'music', 58, 9),
  ('evans', 'music', 77, 32),
  ('ford', 'music', 67, 39),
  ('grant', 'art', 32, 11),
  ('hill', 'art', 30, 11);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('easy', 7, 25),
  ('medium', 2, 40),
  ('medium', 11, 32),
  ('medium', 4, 29),
  ('easy', 10, 47),
  ('easy', 10, 31),
  ('hard', 4, 44),
  ('hard', 7, 20),
  ('easy', 11, 59),
  ('medium', 5, 50),
  ('medium', 9, 23),
  ('hard', 6, 23);

COMMIT;
