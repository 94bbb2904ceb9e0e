-- Planets, dwarf planets, moons, their discoverers, and the missions that went there.

BEGIN TRANSACTION;

-- People who discovered a planet, a dwarf planet or a moon.
--   person_id: Number of the person.
--   name: Given names and family name.
--   birth_year: Year of birth.
--   death_year: Year of death; NULL if alive at the end of 2020.
CREATE TABLE people (
  person_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  birth_year INTEGER NOT NULL,
  death_year INTEGER
);
INSERT INTO people VALUES
  (1, 'Galileo Galilei', 1564, 1642),
  (2, 'Giovanni Domenico Cassini', 1625, 1712),
  (3, 'Christiaan Huygens', 1629, 1695),
  (4, 'William Herschel', 1738, 1822),
  (5, 'Giuseppe Piazzi', 1746, 1826),
  (6, 'William Cranch Bond', 1789, 1859),
  (7, 'William Lassell', 1799, 1880),
  (8, 'Johann Gottfried Galle', 1812, 1910),
  (9, 'George Phillips Bond', 1825, 1865),
  (10, 'Asaph Hall', 1829, 1907),
  (11, 'Edward Emerson Barnard', 1857, 1923),
  (12, 'William Henry Pickering', 1858, 1938),
  (13, 'Charles Dillon Perrine', 1867, 1951),
  (14, 'Philibert Jacques Melotte', 1880, 1961),
  (15, 'Seth Barnes Nicholson', 1891, 1963),
  (16, 'Gerard Kuiper', 1905, 1973),
  (17, 'Clyde Tombaugh', 1906, 1997),
  (18, 'Audouin Dollfus', 1924, 2010),
  (19, 'James Christy', 1938, NULL),
  (20, 'Richard Walker', 1938, 2005),
  (21, 'Charles Kowal', 1940, 2011),
  (22, 'Joseph Burns', 1941, NULL),
  (23, 'Philip Nicholson', 1951, NULL),
  (24, 'Michael Brown', 1965, NULL),
  (25, 'Brett Gladman', 1966, NULL),
  (26, 'John Kavelaars', 1966, NULL);

-- The eight planets and five dwarf planets, from the Sun outwards.
--   body_id: Number of the body.
--   name: Name.
--   kind: 'planet' or 'dwarf planet'.
--   distance_au: Semi-major axis of the orbit around the Sun in astronomical units.
--   year_length_years: Orbital period in Earth years.
--   eccentricity: Eccentricity of the orbit: 0 is a circle.
--   inclination_deg: Inclination of the orbit to the ecliptic in degrees.
--   radius_km: Mean radius in kilometres; NULL where the body is far from a sphere.
--   mass_1e21_kg: Mass in units of 10^21 kilograms; NULL where it has not been measured well.
--   rotation_hours: Sidereal rotation period in hours, whatever the direction; NULL where it is not well known.
--   has_rings: 1 if rings are known, else 0.
--   discovered_year: Year of discovery; NULL if known since antiquity.
--   discoverer_id: Who discovered it, of a team its leader; NULL if known since antiquity or disputed.
CREATE TABLE bodies (
  body_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  distance_au REAL NOT NULL,
  year_length_years REAL NOT NULL,
  eccentricity REAL NOT NULL,
  inclination_deg REAL NOT NULL,
  radius_km REAL,
  mass_1e21_kg REAL,
  rotation_hours REAL,
  has_rings INTEGER NOT NULL,
  discovered_year INTEGER,
  discoverer_id INTEGER REFERENCES people(person_id)
);
INSERT INTO bodies VALUES
  (1, 'Mercury', 'planet', 0.387, 0.241, 0.206, 7.0, 2439.7, 330.0, 1407.6, 0, NULL, NULL),
  (2, 'Venus', 'planet', 0.723, 0.615, 0.007, 3.4, 6051.8, 4868.0, 5832.5, 0, NULL, NULL),
  (3, 'Earth', 'planet', 1.0, 1.0, 0.017, 0.0, 6371.0, 5972.0, 23.9, 0, NULL, NULL),
  (4, 'Mars', 'planet', 1.524, 1.881, 0.093, 1.9, 3389.5, 642.0, 24.6, 0, NULL, NULL),
  (5, 'Ceres', 'dwarf planet', 2.77, 4.6, 0.08, 10.6, 470.0, 0.94, 9.1, 0, 1801, 5),
  (6, 'Jupiter', 'planet', 5.2, 11.9, 0.048, 1.3, 69911.0, 1898000.0, 9.9, 1, NULL, NULL),
  (7, 'Saturn', 'planet', 9.54, 29.5, 0.054, 2.5, 58232.0, 568000.0, 10.7, 1, NULL, NULL),
  (8, 'Uranus', 'planet', 19.2, 84.0, 0.047, 0.8, 25362.0, 86800.0, 17.2, 1, 1781, 4),
  (9, 'Neptune', 'planet', 30.1, 164.8, 0.009, 1.8, 24622.0, 102400.0, 16.1, 1, 1846, 8),
  (10, 'Pluto', 'dwarf planet', 39.5, 248.0, 0.25, 17.1, 1188.0, 13.0, 153.3, 0, 1930, 17),
  (11, 'Haumea', 'dwarf planet', 43.1, 283.0, 0.2, 28.2, NULL, 4.0, 3.9, 1, 2004, NULL),
  (12, 'Makemake', 'dwarf planet', 45.4, 306.0, 0.16, 29.0, 715.0, NULL, 22.8, 0, 2005, 24),
  (13, 'Eris', 'dwarf planet', 67.9, 559.0, 0.44, 44.0, 1163.0, 16.5, NULL, 0, 2005, 24);

-- Robotic missions to planets, dwarf planets and moons, a selection, and the Hubble Space Telescope.
--   mission_id: Number of the mission.
--   name: Name.
--   agency: Agency that led it, or 'Soviet Union'.
--   launched_on (ISO date): Day of the launch (UTC).
--   last_contact_year: Year of the last contact or of the planned end; NULL if still in contact at the end of 2024.
CREATE TABLE missions (
  mission_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  agency TEXT NOT NULL,
  launched_on TEXT NOT NULL,
  last_contact_year INTEGER
);
INSERT INTO missions VALUES
  (1, 'Mariner 2', 'NASA', '1962-08-27', 1963),
  (2, 'Mariner 4', 'NASA', '1964-11-28', 1967),
  (3, 'Luna 9', 'Soviet Union', '1966-01-31', 1966),
  (4, 'Surveyor 1', 'NASA', '1966-05-30', 1967),
  (5, 'Venera 7', 'Soviet Union', '1970-08-17', 1970),
  (6, 'Luna 16', 'Soviet Union', '1970-09-12', 1970),
  (7, 'Luna 17', 'Soviet Union', '1970-11-10', 1971),
  (8, 'Mariner 9', 'NASA', '1971-05-30', 1972),
  (9, 'Pioneer 10', 'NASA', '1972-03-03', 2003),
  (10, 'Pioneer 11', 'NASA', '1973-04-06', 1995),
  (11, 'Mariner 10', 'NASA', '1973-11-03', 1975),
  (12, 'Viking 1', 'NASA', '1975-08-20', 1982),
  (13, 'Viking 2', 'NASA', '1975-09-09', 1980),
  (14, 'Voyager 2', 'NASA', '1977-08-20', NULL),
  (15, 'Voyager 1', 'NASA', '1977-09-05', NULL),
  (16, 'Pioneer Venus Orbiter', 'NASA', '1978-05-20', 1992),
  (17, 'Phobos 2', 'Soviet Union', '1988-07-12', 1989),
  (18, 'Magellan', 'NASA', '1989-05-04', 1994),
  (19, 'Galileo', 'NASA', '1989-10-18', 2003),
  (20, 'Hubble Space Telescope', 'NASA', '1990-04-24', NULL),
  (21, 'Mars Global Surveyor', 'NASA', '1996-11-07', 2006),
  (22, 'Mars Pathfinder', 'NASA', '1996-12-04', 1997),
  (23, 'Cassini-Huygens', 'NASA', '1997-10-15', 2017),
  (24, 'Lunar Prospector', 'NASA', '1998-01-07', 1999),
  (25, 'Mars Odyssey', 'NASA', '2001-04-07', NULL),
  (26, 'Mars Express', 'ESA', '2003-06-02', NULL),
  (27, 'Spirit', 'NASA', '2003-06-10', 2010),
  (28, 'Opportunity', 'NASA', '2003-07-08', 2018),
  (29, 'SMART-1', 'ESA', '2003-09-27', 2006),
  (30, 'Rosetta', 'ESA', '2004-03-02', 2016),
  (31, 'MESSENGER', 'NASA', '2004-08-03', 2015),
  (32, 'Mars Reconnaissance Orbiter', 'NASA', '2005-08-12', NULL),
  (33, 'Venus Express', 'ESA', '2005-11-09', 2015),
  (34, 'New Horizons', 'NASA', '2006-01-19', NULL),
  (35, 'Phoenix', 'NASA', '2007-08-04', 2008),
  (36, 'Kaguya', 'JAXA', '2007-09-14', 2009),
  (37, 'Dawn', 'NASA', '2007-09-27', 2018),
  (38, 'Chang''e 1', 'CNSA', '2007-10-24', 2009),
  (39, 'Chandrayaan-1', 'ISRO', '2008-10-22', 2009),
  (40, 'Lunar Reconnaissance Orbiter', 'NASA', '2009-06-18', NULL),
  (41, 'Juno', 'NASA', '2011-08-05', NULL),
  (42, 'Curiosity', 'NASA', '2011-11-26', NULL),
  (43, 'Mangalyaan', 'ISRO', '2013-11-05', 2022),
  (44, 'MAVEN', 'NASA', '2013-11-18', NULL),
  (45, 'InSight', 'NASA', '2018-05-05', 2022),
  (46, 'BepiColombo', 'ESA', '2018-10-20', NULL),
  (47, 'Chang''e 4', 'CNSA', '2018-12-07', NULL),
  (48, 'Hope', 'UAE Space Agency', '2020-07-19', NULL),
  (49, 'Tianwen-1', 'CNSA', '2020-07-23', NULL),
  (50, 'Perseverance', 'NASA', '2020-07-30', NULL),
  (51, 'Lucy', 'NASA', '2021-10-16', NULL),
  (52, 'JUICE', 'ESA', '2023-04-14', NULL),
  (53, 'Chandrayaan-3', 'ISRO', '2023-07-14', 2023),
  (54, 'SLIM', 'JAXA', '2023-09-06', 2024),
  (55, 'Psyche', 'NASA', '2023-10-13', NULL),
  (56, 'Europa Clipper', 'NASA', '2024-10-14', NULL);

-- Moons of the planets and dwarf planets: a selection that has all large ones.
--   moon_id: Number of the moon.
--   name: Name.
--   body_id: Planet or dwarf planet that it orbits.
--   radius_km: Mean radius in kilometres; NULL where it is only roughly known.
--   distance_km: Semi-major axis of its orbit in kilometres, to three digits.
--   period_days: Orbital period in days.
--   retrograde: 1 if it is retrograde: it orbits against the rotation of its planet or, far out, against the motion of the planet around the Sun; else 0.
--   discovered_year: Year of discovery; NULL for the Moon.
--   found_by_mission_id: Mission in whose images it was found; NULL if it was found from the ground, or always known.
CREATE TABLE moons (
  moon_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  body_id INTEGER NOT NULL REFERENCES bodies(body_id),
  radius_km REAL,
  distance_km INTEGER NOT NULL,
  period_days REAL NOT NULL,
  retrograde INTEGER NOT NULL,
  discovered_year INTEGER,
  found_by_mission_id INTEGER REFERENCES missions(mission_id)
);
INSERT INTO moons VALUES
  (1, 'Moon', 3, 1737.4, 384000, 27.322, 0, NULL, NULL),
  (2, 'Phobos', 4, 11.1, 9380, 0.319, 0, 1877, NULL),
  (3, 'Deimos', 4, 6.2, 23500, 1.263, 0, 1877, NULL),
  (4, 'Metis', 6, 21.5, 128000, 0.295, 0, 1979, 15),
  (5, 'Adrastea', 6, 8.2, 129000, 0.298, 0, 1979, 14),
  (6, 'Amalthea', 6, 83.5, 181000, 0.498, 0, 1892, NULL),
  (7, 'Thebe', 6, 49.3, 222000, 0.675, 0, 1979, 15),
  (8, 'Io', 6, 1821.5, 422000, 1.769, 0, 1610, NULL),
  (9, 'Europa', 6, 1560.8, 671000, 3.551, 0, 1610, NULL),
  (10, 'Ganymede', 6, 2631.2, 1070000, 7.155, 0, 1610, NULL),
  (11, 'Callisto', 6, 2410.3, 1880000, 16.689, 0, 1610, NULL),
  (12, 'Leda', 6, 10.8, 11100000, 240.0, 0, 1974, NULL),
  (13, 'Himalia', 6, 69.8, 11400000, 250.0, 0, 1904, NULL),
  (14, 'Lysithea', 6, 21.1, 11700000, 260.0, 0, 1938, NULL),
  (15, 'Elara', 6, 40.0, 11700000, 260.0, 0, 1905, NULL),
  (16, 'Carme', 6, 23.4, 23100000, 730.0, 1, 1938, NULL),
  (17, 'Pasiphae', 6, 28.9, 23500000, 740.0, 1, 1908, NULL),
  (18, 'Sinope', 6, 17.5, 23700000, 760.0, 1, 1914, NULL),
  (19, 'Pan', 7, 14.0, 134000, 0.575, 0, 1990, 14),
  (20, 'Daphnis', 7, 3.8, 137000, 0.594, 0, 2005, 23),
  (21, 'Atlas', 7, 15.0, 138000, 0.602, 0, 1980, 15),
  (22, 'Prometheus', 7, 43.0, 139000, 0.613, 0, 1980, 15),
  (23, 'Pandora', 7, 41.0, 142000, 0.629, 0, 1980, 15),
  (24, 'Epimetheus', 7, 58.0, 151000, 0.694, 0, 1966, NULL),
  (25, 'Janus', 7, 89.0, 151000, 0.695, 0, 1966, NULL),
  (26, 'Mimas', 7, 198.2, 186000, 0.942, 0, 1789, NULL),
  (27, 'Methone', 7, 1.4, 194000, 1.01, 0, 2004, 23),
  (28, 'Pallene', 7, 2.2, 212000, 1.154, 0, 2004, 23),
  (29, 'Enceladus', 7, 252.1, 238000, 1.37, 0, 1789, NULL),
  (30, 'Tethys', 7, 531.0, 295000, 1.888, 0, 1684, NULL),
  (31, 'Dione', 7, 561.0, 377000, 2.737, 0, 1684, NULL),
  (32, 'Polydeuces', 7, 1.3, 377000, 2.737, 0, 2004, 23),
  (33, 'Rhea', 7, 764.0, 527000, 4.518, 0, 1672, NULL),
  (34, 'Titan', 7, 2574.7, 1220000, 15.945, 0, 1655, NULL),
  (35, 'Hyperion', 7, 135.0, 1480000, 21.28, 0, 1848, NULL),
  (36, 'Iapetus', 7, 734.5, 3560000, 79.3, 0, 1671, NULL),
  (37, 'Phoebe', 7, 106.5, 12900000, 550.0, 1, 1899, NULL),
  (38, 'Cordelia', 8, 20.0, 49800, 0.335, 0, 1986, 14),
  (39, 'Ophelia', 8, 21.0, 53800, 0.376, 0, 1986, 14),
  (40, 'Bianca', 8, 26.0, 59200, 0.435, 0, 1986, 14),
  (41, 'Cressida', 8, 40.0, 61800, 0.464, 0, 1986, 14),
  (42, 'Desdemona', 8, 32.0, 62700, 0.474, 0, 1986, 14),
  (43, 'Juliet', 8, 47.0, 64400, 0.493, 0, 1986, 14),
  (44, 'Portia', 8, 68.0, 66100, 0.513, 0, 1986, 14),
  (45, 'Rosalind', 8, 36.0, 69900, 0.558, 0, 1986, 14),
  (46, 'Cupid', 8, 9.0, 74400, 0.613, 0, 2003, 20),
  (47, 'Belinda', 8, 40.0, 75300, 0.624, 0, 1986, 14),
  (48, 'Perdita', 8, 15.0, 76400, 0.638, 0, 1999, 14),
  (49, 'Puck', 8, 81.0, 86000, 0.762, 0, 1985, 14),
  (50, 'Mab', 8, 12.0, 97700, 0.923, 0, 2003, 20),
  (51, 'Miranda', 8, 235.8, 130000, 1.413, 0, 1948, NULL),
  (52, 'Ariel', 8, 578.9, 191000, 2.52, 0, 1851, NULL),
  (53, 'Umbriel', 8, 584.7, 266000, 4.144, 0, 1851, NULL),
  (54, 'Titania', 8, 788.9, 436000, 8.706, 0, 1787, NULL),
  (55, 'Oberon', 8, 761.4, 584000, 13.463, 0, 1787, NULL),
  (56, 'Caliban', 8, NULL, 7230000, 580.0, 1, 1997, NULL),
  (57, 'Sycorax', 8, NULL, 12200000, 1290.0, 1, 1997, NULL),
  (58, 'Naiad', 9, 33.0, 48200, 0.294, 0, 1989, 14),
  (59, 'Thalassa', 9, 41.0, 50100, 0.311, 0, 1989, 14),
  (60, 'Despina', 9, 75.0, 52500, 0.335, 0, 1989, 14),
  (61, 'Galatea', 9, 88.0, 62000, 0.429, 0, 1989, 14),
  (62, 'Hippocamp', 9, 17.0, 105000, 0.95, 0, 2013, 20),
  (63, 'Proteus', 9, 210.0, 118000, 1.122, 0, 1989, 14),
  (64, 'Triton', 9, 1353.0, 355000, 5.877, 1, 1846, NULL),
  (65, 'Nereid', 9, 170.0, 5510000, 360.0, 0, 1949, NULL),
  (66, 'Charon', 10, 606.0, 19600, 6.387, 0, 1978, NULL),
  (67, 'Styx', 10, NULL, 42700, 20.2, 0, 2012, 20),
  (68, 'Nix', 10, NULL, 48700, 24.9, 0, 2005, 20),
  (69, 'Kerberos', 10, NULL, 57800, 32.2, 0, 2011, 20),
  (70, 'Hydra', 10, NULL, 64700, 38.2, 0, 2005, 20),
  (71, 'Namaka', 11, NULL, 25700, 18.3, 0, 2005, NULL),
  (72, 'Hi''iaka', 11, NULL, 49900, 49.5, 0, 2005, NULL),
  (73, 'Dysnomia', 13, NULL, 37300, 15.8, 0, 2005, NULL);

-- Who discovered the moons that were found from the ground.
--   moon_id: The moon.
--   person_id: One of its discoverers, or the leader of a large team.
CREATE TABLE moon_discoverers (
  moon_id INTEGER NOT NULL REFERENCES moons(moon_id),
  person_id INTEGER NOT NULL REFERENCES people(person_id),
  PRIMARY KEY (moon_id, person_id)
);
INSERT INTO moon_discoverers VALUES
  (2, 10),
  (3, 10),
  (6, 11),
  (8, 1),
  (9, 1),
  (10, 1),
  (11, 1),
  (12, 21),
  (13, 13),
  (14, 15),
  (15, 13),
  (16, 15),
  (17, 14),
  (18, 15),
  (24, 20),
  (25, 18),
  (26, 4),
  (29, 4),
  (30, 2),
  (31, 2),
  (33, 2),
  (34, 3),
  (35, 6),
  (35, 9),
  (35, 7),
  (36, 2),
  (37, 12),
  (51, 16),
  (52, 7),
  (53, 7),
  (54, 4),
  (55, 4),
  (56, 25),
  (56, 23),
  (56, 22),
  (56, 26),
  (57, 25),
  (57, 23),
  (57, 22),
  (57, 26),
  (64, 7),
  (65, 16),
  (66, 19),
  (71, 24),
  (72, 24),
  (73, 24);

-- Arrivals of the missions up to the end of 2024: each flyby, entry into orbit and soft landing has a row.
--   visit_id: Number of the visit, by date.
--   mission_id: The mission.
--   body_id: The planet or dwarf planet, also where one of its moons was the target.
--   moon_id: The moon, if the target was a moon, else NULL.
--   kind: 'flyby', 'orbit' (entered orbit) or 'landing'.
--   arrived_on (ISO date): Day of closest approach, orbit insertion or landing (UTC).
CREATE TABLE visits (
  visit_id INTEGER PRIMARY KEY NOT NULL,
  mission_id INTEGER NOT NULL REFERENCES missions(mission_id),
  body_id INTEGER NOT NULL REFERENCES bodies(body_id),
  moon_id INTEGER REFERENCES moons(moon_id),
  kind TEXT NOT NULL,
  arrived_on TEXT NOT NULL
);
INSERT INTO visits VALUES
  (1, 1, 2, NULL, 'flyby', '1962-12-14'),
  (2, 2, 4, NULL, 'flyby', '1965-07-15'),
  (3, 3, 3, 1, 'landing', '1966-02-03'),
  (4, 4, 3, 1, 'landing', '1966-06-02'),
  (5, 6, 3, 1, 'orbit', '1970-09-17'),
  (6, 6, 3, 1, 'landing', '1970-09-20'),
  (7, 7, 3, 1, 'orbit', '1970-11-15'),
  (8, 7, 3, 1, 'landing', '1970-11-17'),
  (9, 5, 2, NULL, 'landing', '1970-12-15'),
  (10, 8, 4, NULL, 'orbit', '1971-11-14'),
  (11, 9, 6, NULL, 'flyby', '1973-12-04'),
  (12, 11, 2, NULL, 'flyby', '1974-02-05'),
  (13, 11, 1, NULL, 'flyby', '1974-03-29'),
  (14, 11, 1, NULL, 'flyby', '1974-09-21'),
  (15, 10, 6, NULL, 'flyby', '1974-12-03'),
  (16, 11, 1, NULL, 'flyby', '1975-03-16'),
  (17, 12, 4, NULL, 'orbit', '1976-06-19'),
  (18, 12, 4, NULL, 'landing', '1976-07-20'),
  (19, 13, 4, NULL, 'orbit', '1976-08-07'),
  (20, 13, 4, NULL, 'landing', '1976-09-03'),
  (21, 16, 2, NULL, 'orbit', '1978-12-04'),
  (22, 15, 6, NULL, 'flyby', '1979-03-05'),
  (23, 14, 6, NULL, 'flyby', '1979-07-09'),
  (24, 10, 7, NULL, 'flyby', '1979-09-01'),
  (25, 15, 7, NULL, 'flyby', '1980-11-12'),
  (26, 14, 7, NULL, 'flyby', '1981-08-26'),
  (27, 14, 8, NULL, 'flyby', '1986-01-24'),
  (28, 17, 4, NULL, 'orbit', '1989-01-29'),
  (29, 14, 9, NULL, 'flyby', '1989-08-25'),
  (30, 19, 2, NULL, 'flyby', '1990-02-10'),
  (31, 18, 2, NULL, 'orbit', '1990-08-10'),
  (32, 19, 3, NULL, 'flyby', '1990-12-08'),
  (33, 19, 3, NULL, 'flyby', '1992-12-08'),
  (34, 19, 6, NULL, 'orbit', '1995-12-08'),
  (35, 22, 4, NULL, 'landing', '1997-07-04'),
  (36, 21, 4, NULL, 'orbit', '1997-09-12'),
  (37, 24, 3, 1, 'orbit', '1998-01-11'),
  (38, 23, 2, NULL, 'flyby', '1998-04-26'),
  (39, 23, 2, NULL, 'flyby', '1999-06-24'),
  (40, 23, 3, NULL, 'flyby', '1999-08-18'),
  (41, 23, 6, NULL, 'flyby', '2000-12-30'),
  (42, 25, 4, NULL, 'orbit', '2001-10-24'),
  (43, 26, 4, NULL, 'orbit', '2003-12-25'),
  (44, 27, 4, NULL, 'landing', '2004-01-04'),
  (45, 28, 4, NULL, 'landing', '2004-01-25'),
  (46, 23, 7, NULL, 'orbit', '2004-07-01'),
  (47, 29, 3, 1, 'orbit', '2004-11-15'),
  (48, 23, 7, 34, 'landing', '2005-01-14'),
  (49, 30, 3, NULL, 'flyby', '2005-03-04'),
  (50, 31, 3, NULL, 'flyby', '2005-08-02'),
  (51, 32, 4, NULL, 'orbit', '2006-03-10'),
  (52, 33, 2, NULL, 'orbit', '2006-04-11'),
  (53, 31, 2, NULL, 'flyby', '2006-10-24'),
  (54, 30, 4, NULL, 'flyby', '2007-02-25'),
  (55, 34, 6, NULL, 'flyby', '2007-02-28'),
  (56, 31, 2, NULL, 'flyby', '2007-06-05'),
  (57, 36, 3, 1, 'orbit', '2007-10-03'),
  (58, 38, 3, 1, 'orbit', '2007-11-05'),
  (59, 30, 3, NULL, 'flyby', '2007-11-13'),
  (60, 31, 1, NULL, 'flyby', '2008-01-14'),
  (61, 35, 4, NULL, 'landing', '2008-05-25'),
  (62, 31, 1, NULL, 'flyby', '2008-10-06'),
  (63, 39, 3, 1, 'orbit', '2008-11-08'),
  (64, 37, 4, NULL, 'flyby', '2009-02-18'),
  (65, 40, 3, 1, 'orbit', '2009-06-23'),
  (66, 31, 1, NULL, 'flyby', '2009-09-29'),
  (67, 30, 3, NULL, 'flyby', '2009-11-13'),
  (68, 31, 1, NULL, 'orbit', '2011-03-18'),
  (69, 42, 4, NULL, 'landing', '2012-08-06'),
  (70, 41, 3, NULL, 'flyby', '2013-10-09'),
  (71, 44, 4, NULL, 'orbit', '2014-09-22'),
  (72, 43, 4, NULL, 'orbit', '2014-09-24'),
  (73, 37, 5, NULL, 'orbit', '2015-03-06'),
  (74, 34, 10, NULL, 'flyby', '2015-07-14'),
  (75, 41, 6, NULL, 'orbit', '2016-07-05'),
  (76, 45, 4, NULL, 'landing', '2018-11-26'),
  (77, 47, 3, 1, 'orbit', '2018-12-12'),
  (78, 47, 3, 1, 'landing', '2019-01-03'),
  (79, 46, 3, NULL, 'flyby', '2020-04-10'),
  (80, 46, 2, NULL, 'flyby', '2020-10-15'),
  (81, 48, 4, NULL, 'orbit', '2021-02-09'),
  (82, 49, 4, NULL, 'orbit', '2021-02-10'),
  (83, 50, 4, NULL, 'landing', '2021-02-18'),
  (84, 49, 4, NULL, 'landing', '2021-05-14'),
  (85, 46, 2, NULL, 'flyby', '2021-08-10'),
  (86, 46, 1, NULL, 'flyby', '2021-10-01'),
  (87, 46, 1, NULL, 'flyby', '2022-06-23'),
  (88, 51, 3, NULL, 'flyby', '2022-10-16'),
  (89, 46, 1, NULL, 'flyby', '2023-06-19'),
  (90, 53, 3, 1, 'orbit', '2023-08-05'),
  (91, 53, 3, 1, 'landing', '2023-08-23'),
  (92, 54, 3, 1, 'orbit', '2023-12-25'),
  (93, 54, 3, 1, 'landing', '2024-01-19'),
  (94, 52, 3, 1, 'flyby', '2024-08-19'),
  (95, 52, 3, NULL, 'flyby', '2024-08-20'),
  (96, 46, 1, NULL, 'flyby', '2024-09-04'),
  (97, 46, 1, NULL, 'flyby', '2024-12-01'),
  (98, 51, 3, NULL, 'flyby', '2024-12-13');

COMMIT;
