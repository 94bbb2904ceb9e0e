-- Evening courses of a language school over two years.

BEGIN TRANSACTION;

-- Languages on the school's list.
--   language_id: Number of the language.
--   name: Name of the language.
--   family: Language family.
--   script: Script it is written in.
CREATE TABLE languages (
  language_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  family TEXT NOT NULL,
  script TEXT NOT NULL
);
INSERT INTO languages VALUES
  (1, 'Spanish', 'Romance', 'Latin'),
  (2, 'French', 'Romance', 'Latin'),
  (3, 'German', 'Germanic', 'Latin'),
  (4, 'Dutch', 'Germanic', 'Latin'),
  (5, 'Polish', 'Slavic', 'Latin'),
  (6, 'Ukrainian', 'Slavic', 'Cyrillic'),
  (7, 'Japanese', 'Japonic', 'Kana and Kanji'),
  (8, 'Arabic', 'Semitic', 'Arabic'),
  (9, 'Greek', 'Hellenic', 'Greek'),
  (10, 'Welsh', 'Celtic', 'Latin');

-- Teachers, each of one language.
--   teacher_id: Number of the teacher.
--   name: Full name.
--   language_id: Language taught.
--   hourly_rate: Pay per hour in euros.
--   joined_on (ISO date): First day at the school.
--   email: E-mail address; NULL if unknown.
CREATE TABLE teachers (
  teacher_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  language_id INTEGER NOT NULL REFERENCES languages(language_id),
  hourly_rate REAL NOT NULL,
  joined_on TEXT NOT NULL,
  email TEXT
);
INSERT INTO teachers VALUES
  (1, 'María Íñiguez', 1, 30.5, '2019-07-16', NULL),
  (2, 'Claire Delacroix', 2, 32.5, '2020-06-04', 'delacroix@lingua.example'),
  (3, 'Jürgen Voß', 3, 42.0, '2013-04-28', 'voss@lingua.example'),
  (4, 'Annelies de Vries', 4, 42.0, '2023-06-01', 'vries@lingua.example'),
  (5, 'Agnieszka Wrona', 5, 50.5, '2018-08-27', NULL),
  (6, 'Oksana Shevchuk', 6, 48.0, '2020-01-11', 'shevchuk@lingua.example'),
  (7, 'Haruto Kobayashi', 7, 36.5, '2010-06-13', 'kobayashi@lingua.example'),
  (8, 'Rania Mansour', 8, 30.0, '2011-03-06', NULL),
  (9, 'Eleni Markou', 9, 40.0, '2006-04-20', 'markou@lingua.example'),
  (10, 'Pablo Ortega', 1, 53.0, '2019-12-17', 'ortega@lingua.example'),
  (11, 'Hélène Petit', 2, 36.5, '2014-10-27', 'petit@lingua.example'),
  (12, 'Rhys Llewellyn', 10, 45.0, '2022-12-29', NULL),
  (13, 'Sabine Kröger', 3, 48.0, '2005-07-21', 'kroeger@lingua.example');

-- Courses held or announced.
--   course_id: Number of the course.
--   title: Title of the course.
--   teacher_id: Who teaches it.
--   level: Level from A1 (beginner) to C1 (advanced).
--   room: Where it takes place.
--   starts_on (ISO date): First evening.
--   weeks: How many weeks it lasts.
--   fee: Fee in euros.
CREATE TABLE courses (
  course_id INTEGER PRIMARY KEY NOT NULL,
  title TEXT NOT NULL,
  teacher_id INTEGER NOT NULL REFERENCES teachers(teacher_id),
  level TEXT NOT NULL,
  room TEXT NOT NULL,
  starts_on TEXT NOT NULL,
  weeks INTEGER NOT NULL,
  fee REAL NOT NULL
);
INSERT INTO courses VALUES
  (1, 'German for Travellers', 3, 'A2', 'Attic', '2022-10-24', 15, 240.0),
  (2, 'Greek at Work', 9, 'B2', 'Room 3', '2022-11-09', 8, 128.0),
  (3, 'Spanish for Travellers', 10, 'A2', 'Room 3', '2022-11-14', 15, 240.0),
  (4, 'Arabic for Beginners', 8, 'A1', 'Room 3', '2023-01-03', 15, 270.0),
  (5, 'French for Travellers', 11, 'A2', 'Room 2', '2023-01-09', 12, 168.0),
  (6, 'French for Beginners', 11, 'A1', 'Attic', '2023-01-23', 8, 144.0),
  (7, 'French in Conversation', 11, 'B1', 'Room 1', '2023-03-20', 6, 129.0),
  (8, 'Ukrainian through Literature', 6, 'C1', 'Room 1', '2023-04-17', 8, 144.0),
  (9, 'Greek for Travellers', 9, 'A2', 'Room 2', '2023-06-07', 10, 180.0),
  (10, 'Japanese for Beginners', 7, 'A1', 'Library', '2023-06-28', 10, 215.0),
  (11, 'Arabic at Work', 8, 'B2', 'Room 2', '2023-09-04', 8, 128.0),
  (12, 'Dutch through Literature', 4, 'C1', 'Library', '2023-09-04', 12, 216.0),
  (13, 'French in Conversation (II)', 2, 'B1', 'Attic', '2023-09-04', 15, 322.5),
  (14, 'German through Literature', 3, 'C1', 'Room 1', '2023-09-04', 15, 240.0),
  (15, 'Spanish in Conversation', 1, 'B1', 'Room 2', '2023-09-04', 12, 258.0),
  (16, 'Spanish for Beginners', 10, 'A1', 'Room 2', '2023-10-16', 12, 216.0),
  (17, 'Welsh at Work', 12, 'B2', 'Room 1', '2023-10-23', 8, 172.0),
  (18, 'Spanish for Beginners (II)', 1, 'A1', 'Room 2', '2024-01-03', 12, 168.0),
  (19, 'French for Beginners (II)', 2, 'A1', 'Library', '2024-01-03', 10, 215.0),
  (20, 'Greek for Beginners', 9, 'A1', 'Attic', '2024-01-03', 15, 240.0),
  (21, 'Spanish through Literature', 10, 'C1', 'Room 3', '2024-01-04', 6, 108.0),
  (22, 'Japanese for Travellers', 7, 'A2', 'Room 2', '2024-01-08', 10, 160.0),
  (23, 'Spanish through Literature (II)', 1, 'C1', 'Attic', '2024-01-09', 10, 160.0),
  (24, 'Spanish at Work', 10, 'B2', 'Library', '2024-01-24', 6, 84.0),
  (25, 'Polish for Beginners', 5, 'A1', 'Room 2', '2024-01-30', 15, 210.0),
  (26, 'Arabic for Travellers', 8, 'A2', 'Attic', '2024-02-26', 10, 180.0),
  (27, 'Ukrainian for Beginners', 6, 'A1', 'Room 2', '2024-03-18', 10, 215.0),
  (28, 'Welsh in Conversation', 12, 'B1', 'Room 3', '2024-04-01', 10, 215.0),
  (29, 'Arabic through Literature', 8, 'C1', 'Attic', '2024-04-09', 6, 108.0),
  (30, 'Polish in Conversation', 5, 'B1', 'Room 3', '2024-04-11', 8, 144.0);

-- Students of the school.
--   student_id: Number of the student.
--   name: Full name.
--   city: City of residence.
--   birth_date (ISO date): Date of birth.
--   motive: Why they learn: work, travel, family or study; NULL if not said.
CREATE TABLE students (
  student_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  birth_date TEXT NOT NULL,
  motive TEXT
);
INSERT INTO students VALUES
  (1, 'Maja Ståhl', 'Kortrijk', '2000-11-24', 'work'),
  (2, 'Theo Vidal', 'Gent', '1959-01-31', 'study'),
  (3, 'Bartosz Okafor', 'Gent', '1985-12-15', 'study'),
  (4, 'Stefan Torres', 'Gent', '1967-11-26', 'travel'),
  (5, 'Olga Yilmaz', 'Aalst', '1969-07-04', 'study'),
  (6, 'Elena Cohen', 'Aalst', '1960-09-18', 'study'),
  (7, 'Ivan Wójcik', 'Brugge', '1964-02-27', 'work'),
  (8, 'Paolo Jovanović', 'Oostende', '1993-02-18', 'family'),
  (9, 'Elif Dahl', 'Aalst', '1978-07-21', NULL),
  (10, 'Grace Lindqvist', 'Gent', '1968-01-03', 'family'),
  (11, 'João Moreau', 'Gent', '2002-07-18', NULL),
  (12, 'Samira Baptiste', 'Gent', '1963-11-30', 'work'),
  (13, 'Rafael Kumar', 'Aalst', '1992-06-21', 'study'),
  (14, 'Priya Keller', 'Oostende', '1976-11-18', 'work'),
  (15, 'Lena Papadopoulos', 'Oostende', '1968-01-23', 'travel'),
  (16, 'Jana Grünwald', 'Aalst', '2007-12-18', 'work'),
  (17, 'Sofia Hansen', 'Gent', '1959-08-03', 'study'),
  (18, 'Tereza Fontaine', 'Kortrijk', '1985-09-16', 'travel'),
  (19, 'Finn Schmid', 'Gent', '1994-09-26', 'work'),
  (20, 'Emeka Novák', 'Aalst', '1982-01-31', 'work'),
  (21, 'Mateo Petrov', 'Kortrijk', '1973-10-11', 'study'),
  (22, 'Łukasz Tan', 'Oostende', '1982-03-11', NULL),
  (23, 'Clara Ünal', 'Aalst', '2005-06-22', 'travel'),
  (24, 'Marek Rossi', 'Brugge', '1996-10-19', 'travel'),
  (25, 'Björn D''Angelo', 'Brugge', '2001-05-05', 'study'),
  (26, 'Sigrid Abara', 'Kortrijk', '1967-07-29', 'work'),
  (27, 'Noor Nakamura', 'Gent', '2002-09-23', 'family'),
  (28, 'Cem Haddad', 'Gent', '1992-08-19', 'travel'),
  (29, 'Yusuf Rahman', 'Brugge', '1972-08-30', NULL),
  (30, 'Viktor Bianchi', 'Aalst', '1990-01-05', 'family'),
  (31, 'Felix Almeida', 'Brugge', '2007-11-10', 'study'),
  (32, 'Eero Hoffmann', 'Oostende', '1986-11-28', NULL),
  (33, 'Beatriz Berg', 'Oostende', '2005-12-08', 'travel'),
  (34, 'Ada Virtanen', 'Gent', '2005-09-13', 'work'),
  (35, 'Katarína Marchetti', 'Brugge', '1966-08-09', 'study'),
  (36, 'Kaisa Silva', 'Oostende', '1955-07-12', NULL),
  (37, 'Anita Müller', 'Gent', '1978-06-10', 'study'),
  (38, 'Mei Jansen', 'Brugge', '1963-11-26', 'work'),
  (39, 'Ines Weber', 'Gent', '1980-09-26', NULL),
  (40, 'Sanna Pereira', 'Brugge', '1971-02-04', 'work'),
  (41, 'Maren Dubois', 'Kortrijk', '1991-11-28', 'study'),
  (42, 'Oscar Nowak', 'Kortrijk', '1984-05-29', NULL),
  (43, 'Yara Andersen', 'Brugge', '1955-04-04', 'study'),
  (44, 'Tomas Ito', 'Brugge', '1994-06-11', 'travel'),
  (45, 'Fatima García', 'Gent', '1994-08-19', 'study'),
  (46, 'Wanda Quist', 'Brugge', '2005-02-14', NULL),
  (47, 'Karim Zhang', 'Brugge', '1977-05-14', 'study'),
  (48, 'Nadia Lehtonen', 'Oostende', '1972-10-03', 'work'),
  (49, 'Liam Svoboda', 'Aalst', '2005-02-06', 'study'),
  (50, 'Chiara Kowalski', 'Brugge', '1955-08-04', 'study'),
  (51, 'Milan Sato', 'Gent', '1967-08-26', 'work'),
  (52, 'Niamh Kaya', 'Aalst', '1970-05-14', 'travel');

-- Who takes which course.
--   student_id: The student.
--   course_id: The course.
--   enrolled_on (ISO date): Day of enrolment.
--   paid: Fee paid, in euros, after any discount.
--   mark: Final mark out of 100; NULL without an exam.
CREATE TABLE enrolments (
  student_id INTEGER NOT NULL REFERENCES students(student_id),
  course_id INTEGER NOT NULL REFERENCES courses(course_id),
  enrolled_on TEXT NOT NULL,
  paid REAL NOT NULL,
  mark INTEGER,
  PRIMARY KEY (student_id, course_id)
);
INSERT INTO enrolments VALUES
  (46, 1, '2022-10-04', 240.0, 50),
  (10, 2, '2022-09-24', 128.0, 88),
  (23, 2, '2022-10-18', 128.0, NULL),
  (24, 2, '2022-11-07', 102.4, NULL),
  (30, 2, '2022-11-06', 102.4, NULL),
  (31, 2, '2022-09-24', 102.4, 90),
  (32, 2, '2022-11-05', 102.4, NULL),
  (46, 2, '2022-10-07', 128.0, NULL),
  (1, 3, '2022-09-26', 240.0, 97),
  (10, 3, '2022-09-26', 120.0, 100),
  (14, 3, '2022-09-18', 192.0, 50),
  (18, 3, '2022-10-02', 240.0, 88),
  (25, 3, '2022-10-06', 240.0, NULL),
  (4, 4, '2022-12-10', 135.0, NULL),
  (8, 4, '2022-11-24', 216.0, 43),
  (24, 4, '2022-11-20', 216.0, 67),
  (25, 4, '2022-11-29', 135.0, 54),
  (26, 4, '2022-12-15', 270.0, 97),
  (35, 4, '2022-11-15', 270.0, NULL),
  (48, 4, '2022-11-26', 216.0, 67),
  (1, 5, '2022-11-23', 134.4, 65),
  (8, 5, '2022-12-15', 168.0, NULL),
  (14, 5, '2022-12-30', 84.0, 49),
  (15, 5, '2022-12-06', 168.0, NULL),
  (32, 5, '2022-11-29', 168.0, 94),
  (37, 6, '2022-12-10', 115.2, 84),
  (43, 6, '2022-11-25', 144.0, 97),
  (4, 7, '2023-02-15', 129.0, 82),
  (8, 7, '2023-03-09', 129.0, 98),
  (11, 7, '2023-01-30', 129.0, 39),
  (14, 7, '2023-03-09', 129.0, 48),
  (17, 7, '2023-02-22', 129.0, NULL),
  (29, 7, '2023-02-05', 129.0, NULL),
  (36, 7, '2023-02-19', 129.0, NULL),
  (39, 7, '2023-02-09', 129.0, NULL),
  (1, 8, '2023-04-11', 144.0, 69),
  (20, 8, '2023-02-27', 144.0, NULL),
  (40, 8, '2023-02-28', 144.0, 89),
  (4, 9, '2023-04-15', 180.0, NULL),
  (15, 9, '2023-05-24', 180.0, 88),
  (24, 9, '2023-05-13', 180.0, 92),
  (34, 9, '2023-04-29', 180.0, 99),
  (8, 10, '2023-06-18', 215.0, 55),
  (17, 10, '2023-06-11', 107.5, 96),
  (18, 10, '2023-05-24', 215.0, 53),
  (45, 10, '2023-06-06', 215.0, 100),
  (48, 10, '2023-06-18', 215.0, NULL),
  (8, 11, '2023-07-08', 128.0, NULL),
  (15, 11, '2023-08-31', 64.0, 48),
  (28, 11, '2023-07-17', 128.0, 74),
  (33, 11, '2023-07-07', 128.0, 47),
  (36, 11, '2023-08-18', 102.4, NULL),
  (38, 11, '2023-08-31', 128.0, 48),
  (39, 11, '2023-08-28', 102.4, 68),
  (2, 12, '2023-08-02', 216.0, 91),
  (9, 12, '2023-08-09', 216.0, NULL),
  (11, 12, '2023-08-22', 216.0, 66),
  (18, 12, '2023-08-22', 108.0, NULL),
  (26, 12, '2023-07-13', 172.8, 82),
  (37, 12, '2023-08-22', 108.0, 54),
  (7, 13, '2023-07-30', 322.5, 62),
  (31, 13, '2023-08-11', 322.5, 38),
  (41, 13, '2023-07-08', 258.0, 98),
  (1, 14, '2023-07-24', 240.0, 74),
  (5, 14, '2023-08-20', 192.0, NULL),
  (10, 14, '2023-07-28', 240.0, NULL),
  (26, 14, '2023-08-17', 240.0, NULL),
  (3, 15, '2023-07-20', 258.0, 69),
  (10, 15, '2023-07-28', 258.0, 63),
  (16, 15, '2023-07-25', 258.0, 40),
  (22, 15, '2023-08-29', 258.0, 60),
  (21, 16, '2023-09-28', 216.0, 70),
  (34, 16, '2023-09-25', 216.0, 64),
  (8, 17, '2023-09-19', 172.0, 77),
  (9, 17, '2023-09-20', 172.0, 99),
  (40, 17, '2023-10-12', 172.0, 68),
  (46, 17, '2023-09-03', 86.0, 61),
  (1, 18, '2023-12-25', 168.0, 48),
  (10, 18, '2023-11-05', 168.0, NULL),
  (15, 18, '2023-12-21', 168.0, 69),
  (24, 18, '2023-12-24', 168.0, NULL),
  (40, 18, '2023-12-31', 168.0, NULL),
  (2, 19, '2023-12-11', 215.0, 80),
  (3, 19, '2023-12-14', 215.0, 41),
  (10, 19, '2023-11-20', 172.0, 85),
  (19, 19, '2023-11-10', 215.0, 74),
  (41, 19, '2023-11-07', 107.5, 77),
  (4, 20, '2023-12-24', 240.0, 89),
  (8, 20, '2023-12-16', 240.0, 42),
  (12, 20, '2023-12-13', 240.0, 41),
  (37, 20, '2023-11-22', 240.0, NULL),
  (41, 20, '2023-11-20', 240.0, 65),
  (7, 21, '2023-11-23', 108.0, 53),
  (17, 21, '2023-11-20', 108.0, 98),
  (22, 21, '2023-11-17', 54.0, 84),
  (29, 21, '2023-12-18', 86.4, NULL),
  (4, 22, '2024-01-06', 160.0, NULL),
  (20, 22, '2023-12-08', 160.0, NULL),
  (23, 22, '2023-11-23', 80.0, 43),
  (24, 22, '2023-12-21', 160.0, 98),
  (1, 23, '2023-11-12', 160.0, NULL),
  (2, 23, '2023-11-29', 160.0, 72),
  (4, 23, '2023-12-25', 160.0, 98),
  (8, 23, '2023-11-11', 128.0, 95),
  (22, 23, '2023-12-24', 128.0, NULL),
  (24, 23, '2023-12-20', 160.0, 91),
  (33, 23, '2023-11-27', 80.0, 49),
  (34, 23, '2023-12-17', 160.0, 81),
  (46, 23, '2023-12-28', 160.0, 54),
  (48, 23, '2023-12-04', 80.0, 46),
  (5, 24, '2024-01-22', 84.0, 95),
  (6, 24, '2023-12-25', 67.2, 51),
  (8, 24, '2024-01-21', 84.0, 93),
  (13, 24, '2023-12-24', 84.0, NULL),
  (19, 24, '2023-12-31', 84.0, 65),
  (20, 24, '2024-01-19', 67.2, 49),
  (24, 24, '2023-11-30', 84.0, 94),
  (33, 24, '2023-12-22', 67.2, 47),
  (11, 25, '2024-01-14', 210.0, 99),
  (12, 25, '2023-12-17', 168.0, NULL),
  (19, 25, '2023-12-11', 210.0, NULL),
  (20, 25, '2023-12-09', 210.0, 47),
  (36, 25, '2024-01-28', 210.0, 73),
  (2, 26, '2024-02-15', 180.0, 40),
  (28, 26, '2024-02-09', 180.0, NULL),
  (31, 26, '2024-01-18', 90.0, NULL),
  (33, 26, '2024-01-17', 144.0, 92),
  (5, 27, '2024-02-11', 215.0, 59),
  (7, 27, '2024-02-26', 172.0, 69),
  (17, 27, '2024-02-22', 107.5, 75),
  (12, 28, '2024-02-17', 172.0, NULL),
  (28, 28, '2024-03-08', 172.0, 50),
  (38, 28, '2024-02-21', 215.0, 68),
  (43, 28, '2024-02-24', 107.5, 70),
  (45, 28, '2024-03-16', 172.0, 43);

COMMIT;
