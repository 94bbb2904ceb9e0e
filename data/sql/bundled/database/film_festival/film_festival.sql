-- One edition of a film festival in a harbour town: programme, tickets and juries.

BEGIN TRANSACTION;

-- Where films are shown.
--   venue_id: Number of the venue.
--   name: Name of the venue.
--   district: Part of town.
--   seats: Seats for guests.
--   opened_year: Year it opened.
CREATE TABLE venues (
  venue_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  district TEXT NOT NULL,
  seats INTEGER NOT NULL,
  opened_year INTEGER NOT NULL
);
INSERT INTO venues VALUES
  (1, 'Kino Orion', 'Harbour', 420, 1931),
  (2, 'Lichtspielhaus', 'Old Town', 265, 1912),
  (3, 'Palais d''Été', 'Park', 880, 1958),
  (4, 'Studio 7', 'Harbour', 96, 2004),
  (5, 'Open Air Pier', 'Harbour', 650, 2016),
  (6, 'Cinéma L''Ancre', 'Old Town', 180, 1949),
  (7, 'Campus Hall', 'University', 340, 1987);

-- Films in the programme.
--   film_id: Number of the film.
--   title: Original title.
--   director: Director.
--   country: Country of production.
--   language: Main language.
--   genre: drama, comedy, thriller, documentary or animation.
--   year: Year of production.
--   minutes: Length in minutes.
--   budget_m: Budget in millions of euros; NULL if not published.
CREATE TABLE films (
  film_id INTEGER PRIMARY KEY NOT NULL,
  title TEXT NOT NULL,
  director TEXT NOT NULL,
  country TEXT NOT NULL,
  language TEXT NOT NULL,
  genre TEXT NOT NULL,
  year INTEGER NOT NULL,
  minutes INTEGER NOT NULL,
  budget_m REAL
);
INSERT INTO films VALUES
  (1, 'The Salt Road', 'Marit Aune', 'Norway', 'Norwegian', 'drama', 2024, 111, 3.3),
  (2, 'Nach dem Regen', 'Ilse Trautmann', 'Germany', 'German', 'drama', 2023, 76, 2.1),
  (3, 'Ceiling of Birds', 'Kenji Morita', 'Japan', 'Japanese', 'animation', 2023, 138, NULL),
  (4, 'Los días prestados', 'Valeria Quiroga', 'Argentina', 'Spanish', 'drama', 2022, 117, NULL),
  (5, 'Gravel', 'Tom Ashdown', 'United Kingdom', 'English', 'thriller', 2023, 111, 9.6),
  (6, 'La mer n''oublie pas', 'Noémie Carrel', 'France', 'French', 'documentary', 2023, 95, 8.0),
  (7, 'Seven Borrowed Chairs', 'Kenji Morita', 'Japan', 'Japanese', 'comedy', 2023, 67, 6.9),
  (8, 'Mother''s Compass', 'Aoife Brennan', 'Ireland', 'English', 'documentary', 2022, 126, 9.4),
  (9, 'Zimní zahrada', 'Petr Havlas', 'Czechia', 'Czech', 'drama', 2023, 144, NULL),
  (10, 'The Lighthouse Keeper''s Cat', 'Tom Ashdown', 'United Kingdom', 'English', 'comedy', 2023, 121, 4.8),
  (11, 'Umbra', 'Silvia Norcini', 'Italy', 'Italian', 'thriller', 2023, 73, 4.8),
  (12, 'Paper Moons', 'Min-ji Seo', 'South Korea', 'Korean', 'animation', 2024, 116, 9.5),
  (13, 'Tierra blanda', 'Valeria Quiroga', 'Argentina', 'Spanish', 'documentary', 2023, 135, 5.7),
  (14, 'Das letzte Boot', 'Ilse Trautmann', 'Germany', 'German', 'thriller', 2024, 94, NULL),
  (15, 'Night Bus to Porto', 'Rui Salgado', 'Portugal', 'Portuguese', 'comedy', 2023, 162, 5.3),
  (16, 'Kuu', 'Eeva Rantala', 'Finland', 'Finnish', 'animation', 2023, 130, 9.6),
  (17, 'A Field of Engines', 'Grace Oduya', 'Kenya', 'English', 'documentary', 2022, 155, 11.3),
  (18, 'Les trois horloges', 'Noémie Carrel', 'France', 'French', 'drama', 2024, 108, NULL),
  (19, 'Static', 'Min-ji Seo', 'South Korea', 'Korean', 'thriller', 2022, 85, 5.5),
  (20, 'Harbour Songs', 'Aoife Brennan', 'Ireland', 'English', 'documentary', 2023, 135, 11.7),
  (21, 'Il sarto', 'Silvia Norcini', 'Italy', 'Italian', 'drama', 2023, 135, 12.4),
  (22, 'Winter Bees', 'Eeva Rantala', 'Finland', 'Finnish', 'drama', 2022, 121, 4.9),
  (23, 'The Ninth Floor', 'Jack Ferris', 'United States', 'English', 'thriller', 2023, 86, 12.7),
  (24, 'Saltwater Letters', 'Rui Salgado', 'Portugal', 'Portuguese', 'drama', 2023, 161, 12.8),
  (25, 'Matatu Dreams', 'Grace Oduya', 'Kenya', 'Swahili', 'comedy', 2022, 63, 11.2),
  (26, 'Tin Parade', 'Jack Ferris', 'United States', 'English', 'animation', 2022, 157, NULL);

-- Single showings.
--   screening_id: Number of the screening.
--   shown_on (ISO date): Day of the screening.
--   starts_at (time of day): Time of the screening.
--   film_id: The film.
--   venue_id: The venue.
--   tickets: Tickets sold.
--   price: Price of a ticket in euros.
--   with_guest: 1 if the director was present, else 0.
CREATE TABLE screenings (
  screening_id INTEGER PRIMARY KEY NOT NULL,
  shown_on TEXT NOT NULL,
  starts_at TEXT NOT NULL,
  film_id INTEGER NOT NULL REFERENCES films(film_id),
  venue_id INTEGER NOT NULL REFERENCES venues(venue_id),
  tickets INTEGER NOT NULL,
  price REAL NOT NULL,
  with_guest INTEGER NOT NULL
);
INSERT INTO screenings VALUES
  (1, '2024-09-12', '10:30', 3, 3, 384, 12.0, 0),
  (2, '2024-09-12', '10:30', 17, 1, 244, 9.5, 0),
  (3, '2024-09-12', '14:00', 9, 2, 165, 12.0, 0),
  (4, '2024-09-12', '14:00', 12, 6, 42, 14.5, 0),
  (5, '2024-09-12', '16:45', 9, 2, 87, 12.0, 0),
  (6, '2024-09-12', '16:45', 18, 1, 420, 14.5, 1),
  (7, '2024-09-12', '16:45', 18, 7, 170, 7.0, 0),
  (8, '2024-09-12', '16:45', 24, 5, 365, 7.0, 0),
  (9, '2024-09-12', '19:15', 18, 2, 96, 12.0, 0),
  (10, '2024-09-12', '21:45', 4, 7, 60, 7.0, 0),
  (11, '2024-09-12', '21:45', 14, 4, 96, 9.5, 0),
  (12, '2024-09-12', '21:45', 21, 3, 366, 9.5, 0),
  (13, '2024-09-13', '10:30', 19, 4, 60, 14.5, 1),
  (14, '2024-09-13', '14:00', 8, 3, 309, 7.0, 0),
  (15, '2024-09-13', '16:45', 1, 3, 484, 9.5, 0),
  (16, '2024-09-13', '16:45', 3, 5, 516, 9.5, 0),
  (17, '2024-09-13', '16:45', 4, 2, 105, 12.0, 0),
  (18, '2024-09-13', '16:45', 9, 1, 340, 9.5, 1),
  (19, '2024-09-13', '16:45', 10, 7, 157, 9.5, 0),
  (20, '2024-09-13', '16:45', 16, 6, 159, 9.5, 1),
  (21, '2024-09-13', '19:15', 12, 3, 880, 14.5, 1),
  (22, '2024-09-13', '21:45', 10, 4, 46, 9.5, 0),
  (23, '2024-09-13', '21:45', 11, 1, 250, 14.5, 1),
  (24, '2024-09-14', '10:30', 1, 3, 513, 9.5, 0),
  (25, '2024-09-14', '10:30', 7, 5, 581, 9.5, 1),
  (26, '2024-09-14', '14:00', 6, 2, 228, 9.5, 0),
  (27, '2024-09-14', '14:00', 12, 6, 70, 9.5, 1),
  (28, '2024-09-14', '19:15', 16, 4, 38, 7.0, 0),
  (29, '2024-09-14', '21:45', 2, 3, 721, 12.0, 0),
  (30, '2024-09-15', '10:30', 9, 4, 93, 12.0, 1),
  (31, '2024-09-15', '10:30', 21, 5, 551, 7.0, 1),
  (32, '2024-09-15', '14:00', 9, 5, 406, 7.0, 0),
  (33, '2024-09-15', '16:45', 6, 6, 133, 14.5, 1),
  (34, '2024-09-15', '19:15', 8, 1, 378, 9.5, 1),
  (35, '2024-09-15', '19:15', 8, 5, 550, 9.5, 0),
  (36, '2024-09-15', '19:15', 25, 3, 405, 14.5, 0),
  (37, '2024-09-15', '21:45', 10, 1, 196, 9.5, 0),
  (38, '2024-09-16', '10:30', 1, 4, 75, 9.5, 0),
  (39, '2024-09-16', '10:30', 13, 1, 371, 7.0, 0),
  (40, '2024-09-16', '14:00', 8, 4, 82, 14.5, 0),
  (41, '2024-09-16', '14:00', 24, 1, 252, 14.5, 0),
  (42, '2024-09-16', '16:45', 7, 1, 96, 9.5, 0),
  (43, '2024-09-16', '16:45', 8, 5, 365, 14.5, 1),
  (44, '2024-09-16', '19:15', 16, 7, 102, 12.0, 1),
  (45, '2024-09-16', '19:15', 18, 1, 403, 12.0, 0),
  (46, '2024-09-16', '21:45', 1, 6, 137, 9.5, 1),
  (47, '2024-09-17', '10:30', 11, 4, 39, 9.5, 0),
  (48, '2024-09-17', '16:45', 5, 6, 149, 12.0, 1),
  (49, '2024-09-17', '16:45', 25, 7, 132, 9.5, 0),
  (50, '2024-09-17', '19:15', 22, 3, 322, 9.5, 0),
  (51, '2024-09-17', '19:15', 22, 6, 42, 7.0, 0),
  (52, '2024-09-18', '10:30', 17, 6, 141, 9.5, 0),
  (53, '2024-09-18', '16:45', 17, 6, 110, 9.5, 0),
  (54, '2024-09-18', '19:15', 11, 5, 650, 12.0, 0),
  (55, '2024-09-18', '19:15', 12, 7, 189, 9.5, 0),
  (56, '2024-09-18', '19:15', 17, 3, 235, 12.0, 0),
  (57, '2024-09-18', '19:15', 25, 6, 180, 7.0, 0),
  (58, '2024-09-18', '21:45', 19, 6, 46, 9.5, 0),
  (59, '2024-09-19', '10:30', 11, 5, 209, 14.5, 0),
  (60, '2024-09-19', '10:30', 13, 7, 340, 12.0, 0),
  (61, '2024-09-19', '10:30', 14, 4, 73, 14.5, 0),
  (62, '2024-09-19', '10:30', 17, 1, 253, 9.5, 1),
  (63, '2024-09-19', '10:30', 25, 3, 872, 14.5, 0),
  (64, '2024-09-19', '14:00', 6, 6, 35, 9.5, 1),
  (65, '2024-09-19', '14:00', 14, 4, 84, 9.5, 0),
  (66, '2024-09-19', '16:45', 20, 4, 45, 9.5, 0),
  (67, '2024-09-19', '16:45', 21, 3, 506, 14.5, 0),
  (68, '2024-09-19', '19:15', 5, 6, 47, 9.5, 1),
  (69, '2024-09-19', '19:15', 8, 4, 83, 9.5, 0),
  (70, '2024-09-19', '19:15', 8, 7, 95, 12.0, 0),
  (71, '2024-09-20', '10:30', 1, 6, 142, 9.5, 0),
  (72, '2024-09-20', '10:30', 25, 5, 473, 7.0, 0),
  (73, '2024-09-20', '14:00', 2, 5, 255, 9.5, 1),
  (74, '2024-09-20', '16:45', 13, 5, 526, 7.0, 0),
  (75, '2024-09-20', '19:15', 5, 4, 19, 9.5, 0),
  (76, '2024-09-21', '10:30', 5, 6, 53, 14.5, 0),
  (77, '2024-09-21', '10:30', 11, 2, 100, 9.5, 0),
  (78, '2024-09-21', '14:00', 7, 1, 338, 12.0, 0),
  (79, '2024-09-21', '14:00', 7, 7, 179, 12.0, 1),
  (80, '2024-09-21', '14:00', 24, 5, 125, 14.5, 0),
  (81, '2024-09-21', '16:45', 14, 5, 390, 9.5, 0),
  (82, '2024-09-21', '19:15', 3, 3, 880, 7.0, 0),
  (83, '2024-09-22', '10:30', 2, 7, 95, 9.5, 1),
  (84, '2024-09-22', '10:30', 22, 5, 185, 9.5, 0),
  (85, '2024-09-22', '10:30', 25, 1, 315, 9.5, 0),
  (86, '2024-09-22', '14:00', 1, 6, 108, 7.0, 0),
  (87, '2024-09-22', '16:45', 1, 1, 356, 9.5, 0),
  (88, '2024-09-22', '21:45', 2, 2, 216, 9.5, 0),
  (89, '2024-09-22', '21:45', 6, 3, 442, 7.0, 0),
  (90, '2024-09-22', '21:45', 21, 5, 478, 9.5, 0);

-- Members of the jury.
--   juror_id: Number of the juror.
--   name: Full name.
--   country: Home country.
--   profession: Profession.
CREATE TABLE jurors (
  juror_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  profession TEXT NOT NULL
);
INSERT INTO jurors VALUES
  (1, 'Ingrid Solheim', 'Norway', 'actor'),
  (2, 'Baptiste Lemoine', 'France', 'critic'),
  (3, 'Adaeze Nwosu', 'Nigeria', 'director'),
  (4, 'Hiroko Tanabe', 'Japan', 'critic'),
  (5, 'Marco D''Alessio', 'Italy', 'composer'),
  (6, 'Sarah Whitlock', 'United Kingdom', 'editor'),
  (7, 'Jorge Peña', 'Mexico', 'director'),
  (8, 'Annika Söderberg', 'Sweden', 'actor'),
  (9, 'Dmytro Koval', 'Ukraine', 'critic');

-- Marks given by jurors to films.
--   juror_id: The juror.
--   film_id: The film.
--   mark: 1.0 (worst) to 10.0 (best), in halves.
--   remark: A short remark; NULL if none.
CREATE TABLE marks (
  juror_id INTEGER NOT NULL REFERENCES jurors(juror_id),
  film_id INTEGER NOT NULL REFERENCES films(film_id),
  mark REAL NOT NULL,
  remark TEXT,
  PRIMARY KEY (juror_id, film_id)
);
INSERT INTO marks VALUES
  (1, 5, 8.0, 'brilliant camera'),
  (1, 6, 7.0, 'great cast'),
  (1, 7, 8.0, NULL),
  (1, 11, 7.0, 'brilliant camera'),
  (1, 14, 8.5, 'uneven'),
  (1, 16, 8.0, 'brilliant camera'),
  (1, 19, 7.0, 'uneven'),
  (1, 20, 3.0, NULL),
  (1, 21, 8.5, 'too long'),
  (1, 24, 5.0, 'brilliant camera'),
  (2, 6, 8.5, NULL),
  (2, 8, 6.0, NULL),
  (2, 10, 5.0, 'uneven'),
  (2, 14, 7.0, 'moving'),
  (2, 15, 6.5, NULL),
  (2, 16, 5.5, 'moving'),
  (2, 18, 6.5, 'great cast'),
  (2, 19, 4.0, 'uneven'),
  (2, 22, 7.0, NULL),
  (2, 23, 9.0, 'brilliant camera'),
  (2, 24, 6.5, 'brilliant camera'),
  (3, 6, 6.0, 'too long'),
  (3, 7, 8.5, 'moving'),
  (3, 8, 7.5, 'great cast'),
  (3, 9, 7.0, 'moving'),
  (3, 10, 7.0, 'too long'),
  (3, 13, 6.5, 'uneven'),
  (3, 14, 7.0, 'great cast'),
  (3, 15, 7.0, NULL),
  (3, 18, 8.0, NULL),
  (3, 19, 5.5, NULL),
  (3, 22, 6.0, 'brilliant camera'),
  (3, 23, 7.0, 'uneven'),
  (4, 1, 5.0, 'moving'),
  (4, 3, 5.0, 'uneven'),
  (4, 7, 8.0, NULL),
  (4, 9, 10.0, 'great cast'),
  (4, 11, 7.5, 'great cast'),
  (4, 12, 10.0, NULL),
  (4, 13, 6.0, 'brilliant camera'),
  (4, 15, 7.0, 'moving'),
  (4, 17, 7.0, NULL),
  (4, 19, 7.5, 'brilliant camera'),
  (4, 20, 5.5, 'great cast'),
  (4, 21, 10.0, 'moving'),
  (5, 1, 4.5, 'brilliant camera'),
  (5, 2, 6.0, 'moving'),
  (5, 3, 6.0, NULL),
  (5, 4, 7.5, 'great cast'),
  (5, 6, 7.0, NULL),
  (5, 7, 7.0, NULL),
  (5, 8, 7.5, NULL),
  (5, 9, 9.0, 'too long'),
  (5, 10, 4.5, 'great cast'),
  (5, 11, 6.0, 'too long'),
  (5, 12, 10.0, 'moving'),
  (5, 16, 4.5, NULL),
  (5, 19, 8.5, 'great cast'),
  (5, 20, 7.0, 'moving'),
  (5, 21, 10.0, 'brilliant camera'),
  (5, 22, 8.0, NULL),
  (5, 23, 6.0, NULL),
  (6, 4, 10.0, 'moving'),
  (6, 5, 8.0, NULL),
  (6, 6, 7.0, NULL),
  (6, 7, 8.0, 'moving'),
  (6, 14, 7.0, NULL),
  (6, 16, 8.0, NULL),
  (6, 17, 7.0, 'brilliant camera'),
  (6, 20, 6.5, NULL),
  (6, 21, 10.0, 'too long'),
  (6, 22, 8.5, 'great cast'),
  (6, 24, 5.5, NULL),
  (7, 2, 8.5, 'uneven'),
  (7, 6, 3.0, 'moving'),
  (7, 7, 9.0, 'too long'),
  (7, 8, 7.0, 'brilliant camera'),
  (7, 9, 10.0, 'brilliant camera'),
  (7, 12, 9.0, 'uneven'),
  (7, 14, 8.0, 'too long'),
  (7, 22, 5.0, NULL),
  (7, 23, 7.0, NULL),
  (8, 1, 7.5, 'too long'),
  (8, 4, 9.0, NULL),
  (8, 8, 6.5, 'brilliant camera'),
  (8, 12, 9.5, 'brilliant camera'),
  (8, 13, 6.0, NULL),
  (8, 14, 6.0, 'uneven'),
  (8, 16, 5.5, NULL),
  (8, 17, 8.5, 'too long');

-- Awards of the festival.
--   award_id: Number of the award.
--   name: Name of the award.
--   film_id: Film that won it; NULL if not given.
--   given_by: jury, audience, critics or sponsor.
--   prize: Prize money in euros.
CREATE TABLE awards (
  award_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  film_id INTEGER REFERENCES films(film_id),
  given_by TEXT NOT NULL,
  prize INTEGER NOT NULL
);
INSERT INTO awards VALUES
  (1, 'Golden Anchor', 1, 'jury', 25000),
  (2, 'Silver Anchor', 22, 'jury', 12000),
  (3, 'Best Director', 18, 'jury', 8000),
  (4, 'Best Documentary', 17, 'jury', 6000),
  (5, 'Audience Prize', 10, 'audience', 5000),
  (6, 'Best Animation', 3, 'jury', 6000),
  (7, 'Young Talent', 16, 'sponsor', 3500),
  (8, 'Lighthouse Prize', 17, 'sponsor', 4000),
  (9, 'Critics'' Choice', 22, 'critics', 2500),
  (10, 'Best Short', NULL, 'jury', 3000),
  (11, 'Harbour Prize', 20, 'audience', 1500);

COMMIT;
