-- Telescopes of an observatory network, who uses them, and what they looked at.

BEGIN TRANSACTION;

-- Places where telescopes stand.
--   site_id: Number of the site.
--   name: Name of the site.
--   country: Country.
--   altitude_m: Altitude in metres.
--   cloudy_pct: Share of cloudy nights in percent.
CREATE TABLE sites (
  site_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  altitude_m INTEGER NOT NULL,
  cloudy_pct REAL NOT NULL
);
INSERT INTO sites VALUES
  (1, 'Cerro Ventoso', 'Chile', 2640, 11.6),
  (2, 'Roque Alto', 'Spain', 2390, 20.4),
  (3, 'Mount Dunmore', 'Australia', 1165, 37.6),
  (4, 'Hohe Warte', 'Austria', 890, 56.8),
  (5, 'Mauna Iki', 'United States', 4120, 7.2);

-- The telescopes.
--   telescope_id: Number of the telescope.
--   name: Name of the telescope.
--   site_id: Site it stands on.
--   kind: reflector, refractor, robotic, infrared or Schmidt camera.
--   aperture_m: Aperture in metres.
--   first_light (ISO date): Day of first light.
CREATE TABLE telescopes (
  telescope_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  site_id INTEGER NOT NULL REFERENCES sites(site_id),
  kind TEXT NOT NULL,
  aperture_m REAL NOT NULL,
  first_light TEXT NOT NULL
);
INSERT INTO telescopes VALUES
  (1, 'Ventoso One', 1, 'reflector', 8.2, '1999-05-25'),
  (2, 'Ventoso Survey', 1, 'reflector', 2.6, '2011-06-08'),
  (3, 'Gran Ojo', 2, 'reflector', 10.4, '2007-07-13'),
  (4, 'Liverpool''s Eye', 2, 'robotic', 2.0, '2003-07-27'),
  (5, 'Dunmore Schmidt', 3, 'Schmidt camera', 1.2, '1973-08-17'),
  (6, 'Dunmore 4m', 3, 'reflector', 3.9, '1974-06-27'),
  (7, 'Great Refractor', 4, 'refractor', 0.68, '1884-03-29'),
  (8, 'Iki North', 5, 'reflector', 8.1, '1999-01-29'),
  (9, 'Iki Infrared', 5, 'infrared', 3.8, '1979-10-10'),
  (10, 'Pup', 4, 'robotic', 0.4, '2018-09-02');

-- Objects in the sky.
--   target_id: Number of the target.
--   name: Name of the object.
--   kind: galaxy, nebula, star, cluster, quasar or black hole.
--   constellation: Constellation.
--   magnitude: Apparent magnitude (smaller is brighter); NULL if not seen in visible light.
CREATE TABLE targets (
  target_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  constellation TEXT NOT NULL,
  magnitude REAL
);
INSERT INTO targets VALUES
  (1, 'Andromeda Galaxy', 'galaxy', 'Andromeda', 3.44),
  (2, 'Whirlpool Galaxy', 'galaxy', 'Canes Venatici', 8.4),
  (3, 'Sombrero Galaxy', 'galaxy', 'Virgo', 8.98),
  (4, 'Centaurus A', 'galaxy', 'Centaurus', 6.84),
  (5, 'Orion Nebula', 'nebula', 'Orion', 4.0),
  (6, 'Ring Nebula', 'nebula', 'Lyra', 8.8),
  (7, 'Crab Nebula', 'nebula', 'Taurus', 8.4),
  (8, 'Barnard 68', 'nebula', 'Ophiuchus', NULL),
  (9, 'Vega', 'star', 'Lyra', 0.03),
  (10, 'Betelgeuse', 'star', 'Orion', 0.5),
  (11, 'Barnard''s Star', 'star', 'Ophiuchus', 9.51),
  (12, 'Proxima Centauri', 'star', 'Centaurus', 11.13),
  (13, 'Eta Carinae', 'star', 'Carina', 4.3),
  (14, 'Pleiades', 'cluster', 'Taurus', 1.6),
  (15, 'Omega Centauri', 'cluster', 'Centaurus', 3.9),
  (16, '47 Tucanae', 'cluster', 'Tucana', 4.09),
  (17, '3C 273', 'quasar', 'Virgo', 12.9),
  (18, 'TON 618', 'quasar', 'Canes Venatici', 15.9),
  (19, 'TRAPPIST-1', 'star', 'Aquarius', 18.8),
  (20, 'Sagittarius A*', 'black hole', 'Sagittarius', NULL);

-- People who apply for telescope time.
--   astronomer_id: Number of the astronomer.
--   name: Full name.
--   institute: Town of the institute.
--   position: professor, postdoc or student.
--   h_index: Hirsch index; NULL if unknown.
CREATE TABLE astronomers (
  astronomer_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  institute TEXT NOT NULL,
  position TEXT NOT NULL,
  h_index INTEGER
);
INSERT INTO astronomers VALUES
  (1, 'Samira Çelik', 'Santiago', 'professor', 35),
  (2, 'Fatima Nowak', 'Pasadena', 'postdoc', 16),
  (3, 'Elena Schmid', 'Leiden', 'postdoc', NULL),
  (4, 'Daniel Jansen', 'Leiden', 'student', 6),
  (5, 'João Papadopoulos', 'Heidelberg', 'student', 6),
  (6, 'Lena Fischer', 'Kyoto', 'student', 1),
  (7, 'Hana Lindqvist', 'Canberra', 'student', 6),
  (8, 'Ivan Hoffmann', 'Leiden', 'professor', 51),
  (9, 'Sanna Hansen', 'Pasadena', 'postdoc', NULL),
  (10, 'Björn Reyes', 'Pasadena', 'postdoc', NULL),
  (11, 'Theo Varga', 'Leiden', 'postdoc', 14),
  (12, 'Noor Kowalski', 'Leiden', 'postdoc', NULL),
  (13, 'Cem Horvat', 'Canberra', 'postdoc', NULL),
  (14, 'Stefan Fernández', 'Heidelberg', 'postdoc', 18),
  (15, 'Bartosz Petrov', 'Leiden', 'student', 5),
  (16, 'Viktor O''Brien', 'Leiden', 'professor', NULL),
  (17, 'Felix Fontaine', 'Kyoto', 'postdoc', 10),
  (18, 'Milan Maier', 'Canberra', 'postdoc', 22),
  (19, 'Vera Ünal', 'Leiden', 'postdoc', 9),
  (20, 'Karim Keller', 'Pasadena', 'professor', 35);

-- Applications for telescope time.
--   proposal_id: Number of the proposal.
--   submitted_on (ISO date): Day of submission.
--   title: Title.
--   lead_id: Astronomer who leads it.
--   hours: Hours of telescope time asked for.
--   grade: A (best), B or C; NULL if not yet judged.
CREATE TABLE proposals (
  proposal_id INTEGER PRIMARY KEY NOT NULL,
  submitted_on TEXT NOT NULL,
  title TEXT NOT NULL,
  lead_id INTEGER NOT NULL REFERENCES astronomers(astronomer_id),
  hours REAL NOT NULL,
  grade TEXT
);
INSERT INTO proposals VALUES
  (1, '2021-09-25', 'Expanding shells of planetary nebulae', 1, 39.5, 'C'),
  (2, '2021-10-09', 'The pulsar in the Crab', 11, 29.5, 'B'),
  (3, '2021-12-27', 'Pulsating stars in old clusters', 14, 28.5, 'B'),
  (4, '2021-12-28', 'Variable quasars over a decade', 16, 5.0, 'C'),
  (5, '2022-02-24', 'Planets around ultracool stars', 1, 7.0, 'B'),
  (6, '2022-02-24', 'The halo of Andromeda', 10, 28.5, 'A'),
  (7, '2022-03-13', 'Binary stars in globular clusters', 5, 49.0, 'B'),
  (8, '2022-04-16', 'Dust in the arms of nearby spirals', 11, 57.0, 'B'),
  (9, '2022-04-23', 'A census of faint companions', 1, 49.5, NULL),
  (10, '2022-05-13', 'Ages of open clusters', 8, 36.5, 'B'),
  (11, '2022-06-03', 'Flares of red dwarfs', 7, 31.5, 'B'),
  (12, '2022-08-11', 'Mass loss of supergiants', 6, 15.0, NULL),
  (13, '2022-10-07', 'Chemistry of dark clouds', 4, 41.5, 'B'),
  (14, '2022-10-17', 'Spectra for students', 7, 26.5, 'C'),
  (15, '2022-10-24', 'A deep look at the galactic centre', 6, 29.5, 'C'),
  (16, '2022-11-03', 'Echo mapping of active nuclei', 14, 38.5, 'A'),
  (17, '2023-01-19', 'Jets of radio galaxies', 15, 15.5, 'B'),
  (18, '2023-06-22', 'Light echoes of Eta Carinae', 2, 3.5, 'A'),
  (19, '2023-07-07', 'Starbirth in Orion', 7, 41.0, 'C'),
  (20, '2023-09-11', 'Dark matter around dwarf galaxies', 4, 48.5, 'A');

-- Single exposures.
--   observation_id: Number of the observation.
--   night (ISO date): Night of the observation.
--   proposal_id: Proposal it was made for.
--   telescope_id: Telescope used.
--   target_id: Object observed.
--   exposure_s: Exposure in seconds.
--   seeing: Seeing in arc seconds (smaller is better); NULL if not measured.
--   quality: good, poor or failed.
CREATE TABLE observations (
  observation_id INTEGER PRIMARY KEY NOT NULL,
  night TEXT NOT NULL,
  proposal_id INTEGER NOT NULL REFERENCES proposals(proposal_id),
  telescope_id INTEGER NOT NULL REFERENCES telescopes(telescope_id),
  target_id INTEGER NOT NULL REFERENCES targets(target_id),
  exposure_s INTEGER NOT NULL,
  seeing REAL,
  quality TEXT NOT NULL
);
INSERT INTO observations VALUES
  (1, '2022-02-22', 2, 6, 17, 1800, 1.34, 'failed'),
  (2, '2022-04-08', 1, 3, 13, 300, 0.62, 'good'),
  (3, '2022-04-08', 4, 8, 2, 120, 1.18, 'good'),
  (4, '2022-04-10', 3, 4, 10, 3600, 1.64, 'poor'),
  (5, '2022-06-10', 4, 8, 2, 600, 0.71, 'poor'),
  (6, '2022-06-20', 3, 4, 10, 900, NULL, 'good'),
  (7, '2022-07-15', 8, 4, 10, 300, 0.46, 'good'),
  (8, '2022-07-19', 5, 9, 17, 300, 2.39, 'good'),
  (9, '2022-08-12', 1, 9, 14, 300, 0.7, 'good'),
  (10, '2022-08-28', 7, 2, 16, 3600, NULL, 'good'),
  (11, '2022-09-28', 8, 4, 3, 600, 1.28, 'good'),
  (12, '2022-10-14', 8, 2, 10, 1800, 0.74, 'poor'),
  (13, '2022-10-15', 11, 9, 13, 1800, 0.41, 'failed'),
  (14, '2022-10-17', 2, 4, 17, 300, 0.44, 'good'),
  (15, '2022-10-18', 3, 4, 10, 120, 1.58, 'good'),
  (16, '2022-10-21', 11, 9, 2, 1200, 1.05, 'good'),
  (17, '2022-12-01', 10, 4, 6, 600, 1.47, 'good'),
  (18, '2022-12-09', 11, 2, 13, 60, 1.25, 'good'),
  (19, '2022-12-22', 5, 7, 8, 300, NULL, 'good'),
  (20, '2023-01-09', 7, 5, 4, 300, 0.63, 'good'),
  (21, '2023-01-14', 8, 2, 10, 120, 1.81, 'poor'),
  (22, '2023-01-18', 13, 5, 10, 300, 2.49, 'good'),
  (23, '2023-01-28', 11, 9, 5, 3600, 0.42, 'failed'),
  (24, '2023-02-09', 6, 3, 16, 120, NULL, 'good'),
  (25, '2023-02-10', 10, 4, 8, 1200, NULL, 'good'),
  (26, '2023-02-16', 14, 1, 8, 900, 1.19, 'good'),
  (27, '2023-02-27', 2, 6, 17, 300, 1.19, 'good'),
  (28, '2023-03-12', 6, 3, 3, 60, 2.05, 'good'),
  (29, '2023-03-13', 13, 5, 17, 900, 1.59, 'good'),
  (30, '2023-03-14', 14, 9, 17, 300, 1.54, 'good'),
  (31, '2023-03-17', 14, 9, 5, 60, NULL, 'poor'),
  (32, '2023-03-19', 14, 1, 5, 1200, 1.43, 'good'),
  (33, '2023-03-30', 6, 2, 8, 3600, 1.2, 'good'),
  (34, '2023-04-03', 7, 5, 4, 300, 1.58, 'good'),
  (35, '2023-04-04', 7, 5, 16, 600, 1.33, 'good'),
  (36, '2023-04-04', 11, 2, 2, 60, 0.48, 'poor'),
  (37, '2023-04-16', 15, 2, 11, 600, 1.88, 'good'),
  (38, '2023-04-27', 11, 2, 13, 1200, 1.7, 'failed'),
  (39, '2023-05-01', 16, 9, 5, 3600, 2.16, 'good'),
  (40, '2023-05-13', 17, 8, 12, 300, 1.09, 'poor'),
  (41, '2023-05-21', 13, 3, 10, 600, 0.59, 'good'),
  (42, '2023-05-24', 5, 7, 6, 60, 1.33, 'good'),
  (43, '2023-05-24', 14, 9, 5, 1800, 1.5, 'good'),
  (44, '2023-05-29', 4, 8, 2, 900, 1.42, 'good'),
  (45, '2023-06-04', 16, 3, 7, 1800, 1.77, 'good'),
  (46, '2023-06-05', 4, 8, 15, 300, 1.13, 'poor'),
  (47, '2023-06-06', 8, 2, 13, 300, 1.02, 'good'),
  (48, '2023-06-20', 4, 8, 2, 600, 1.87, 'poor'),
  (49, '2023-07-05', 10, 4, 8, 600, 2.18, 'good'),
  (50, '2023-07-06', 10, 9, 16, 120, NULL, 'good'),
  (51, '2023-07-20', 4, 8, 2, 1800, 0.84, 'failed'),
  (52, '2023-08-04', 16, 9, 16, 900, 0.47, 'good'),
  (53, '2023-08-20', 13, 5, 10, 600, 1.75, 'poor'),
  (54, '2023-08-21', 1, 9, 13, 3600, 1.34, 'failed'),
  (55, '2023-08-22', 8, 2, 10, 1200, 1.9, 'poor'),
  (56, '2023-08-31', 5, 9, 6, 120, 2.05, 'failed'),
  (57, '2023-09-04', 14, 9, 17, 300, 1.22, 'good'),
  (58, '2023-09-13', 1, 3, 14, 900, 1.86, 'good'),
  (59, '2023-09-15', 13, 3, 17, 1200, 2.11, 'good'),
  (60, '2023-09-18', 8, 2, 13, 120, 2.54, 'failed'),
  (61, '2023-09-19', 17, 8, 11, 60, NULL, 'failed'),
  (62, '2023-09-28', 18, 2, 8, 1200, 2.12, 'good'),
  (63, '2023-10-06', 5, 9, 6, 900, 1.01, 'good'),
  (64, '2023-10-07', 10, 9, 16, 3600, 0.8, 'good'),
  (65, '2023-10-08', 19, 5, 14, 900, 1.94, 'poor'),
  (66, '2023-10-10', 8, 4, 13, 300, 1.71, 'good'),
  (67, '2023-10-16', 1, 9, 14, 3600, NULL, 'good'),
  (68, '2023-10-19', 19, 7, 10, 3600, 1.44, 'good'),
  (69, '2023-10-21', 2, 4, 17, 60, 0.66, 'failed'),
  (70, '2023-10-21', 19, 7, 10, 3600, 1.4, 'failed'),
  (71, '2023-10-22', 19, 7, 14, 3600, 0.71, 'poor'),
  (72, '2023-10-28', 19, 5, 14, 60, 0.75, 'poor'),
  (73, '2023-11-01', 16, 9, 5, 3600, 2.16, 'good'),
  (74, '2023-11-05', 18, 4, 8, 300, NULL, 'good'),
  (75, '2023-11-07', 10, 4, 16, 300, 1.55, 'good'),
  (76, '2023-11-09', 16, 9, 16, 1800, 1.89, 'good'),
  (77, '2023-11-12', 19, 5, 14, 300, 0.86, 'good'),
  (78, '2023-11-18', 16, 3, 16, 3600, 1.07, 'good'),
  (79, '2023-11-22', 13, 5, 17, 1200, 1.75, 'poor'),
  (80, '2023-11-22', 18, 4, 8, 900, 1.31, 'failed'),
  (81, '2023-11-25', 5, 7, 8, 600, 2.56, 'good'),
  (82, '2023-11-25', 11, 9, 2, 600, 1.72, 'failed'),
  (83, '2023-11-26', 18, 4, 8, 900, NULL, 'good'),
  (84, '2023-11-28', 19, 7, 7, 300, 1.01, 'good'),
  (85, '2023-12-04', 6, 2, 8, 300, 1.86, 'poor'),
  (86, '2023-12-05', 7, 2, 16, 3600, 1.13, 'good'),
  (87, '2023-12-08', 7, 5, 8, 60, 1.14, 'good'),
  (88, '2023-12-11', 19, 5, 10, 300, 0.58, 'good'),
  (89, '2023-12-19', 4, 8, 2, 300, NULL, 'good'),
  (90, '2024-01-19', 6, 3, 3, 1800, 1.58, 'good'),
  (91, '2024-01-29', 2, 4, 17, 60, 1.47, 'good'),
  (92, '2024-01-31', 14, 9, 5, 120, 1.89, 'poor'),
  (93, '2024-02-02', 1, 9, 3, 120, 1.45, 'good'),
  (94, '2024-02-13', 8, 2, 3, 300, 1.57, 'good'),
  (95, '2024-02-28', 5, 9, 8, 60, 1.88, 'failed'),
  (96, '2024-03-03', 14, 1, 5, 300, 0.74, 'poor'),
  (97, '2024-03-13', 2, 4, 19, 1800, 0.73, 'good'),
  (98, '2024-03-14', 19, 7, 7, 600, 1.59, 'poor'),
  (99, '2024-03-19', 15, 2, 7, 60, 2.27, 'failed'),
  (100, '2024-03-26', 11, 9, 13, 120, 1.32, 'good'),
  (101, '2024-03-27', 14, 1, 8, 120, 0.54, 'good'),
  (102, '2024-03-30', 19, 5, 7, 900, 1.48, 'good'),
  (103, '2024-04-03', 10, 4, 16, 3600, 0.72, 'good'),
  (104, '2024-04-06', 10, 4, 16, 600, NULL, 'good'),
  (105, '2024-04-12', 3, 3, 10, 120, 1.41, 'good'),
  (106, '2024-04-14', 2, 4, 19, 300, 2.5, 'good'),
  (107, '2024-04-16', 17, 8, 11, 60, 1.54, 'good'),
  (108, '2024-04-22', 18, 4, 11, 60, 1.58, 'poor'),
  (109, '2024-04-24', 5, 7, 17, 3600, 0.69, 'failed'),
  (110, '2024-04-26', 20, 5, 7, 1200, 0.51, 'good'),
  (111, '2024-04-28', 2, 4, 19, 300, 0.82, 'good'),
  (112, '2024-04-28', 17, 4, 11, 120, NULL, 'good'),
  (113, '2024-05-03', 8, 4, 3, 300, NULL, 'good'),
  (114, '2024-05-06', 18, 2, 11, 3600, 1.53, 'good'),
  (115, '2024-05-11', 20, 1, 7, 3600, 1.06, 'poor'),
  (116, '2024-05-15', 19, 5, 7, 1800, NULL, 'poor'),
  (117, '2024-05-18', 20, 1, 17, 300, 1.1, 'good'),
  (118, '2024-05-22', 18, 2, 11, 1200, 1.34, 'poor'),
  (119, '2024-05-29', 18, 4, 11, 120, 1.93, 'good'),
  (120, '2024-05-31', 19, 5, 10, 300, 0.54, 'poor'),
  (121, '2024-05-31', 20, 5, 7, 600, 2.29, 'good'),
  (122, '2024-06-04', 13, 5, 17, 300, NULL, 'good'),
  (123, '2024-06-11', 18, 4, 11, 600, 2.3, 'failed'),
  (124, '2024-06-16', 19, 7, 10, 900, 2.12, 'poor'),
  (125, '2024-06-16', 20, 1, 17, 60, 0.44, 'good'),
  (126, '2024-06-17', 10, 4, 16, 3600, 2.51, 'good'),
  (127, '2024-06-22', 19, 5, 10, 300, 0.76, 'poor'),
  (128, '2024-06-25', 7, 2, 8, 600, 1.56, 'good'),
  (129, '2024-06-25', 20, 1, 17, 60, 2.09, 'poor'),
  (130, '2024-06-30', 13, 3, 17, 60, 2.31, 'good');

COMMIT;
