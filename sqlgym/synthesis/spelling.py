"""Which parts of names are words, and what shortened ones stand for by rule.

    trng    training    the consonants of a longer word, or the first of them
    strt    ?           of start as well as of street: not said at all

A part is written out only where one word of databases fits and it is no word itself. What is left
is known to be a word if it is a usual one, or long and spelt like one; a name with any other part
is hardly ever asked about.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from sqlgym.synthesis.lexicon import word_set

_VOWELS = frozenset("aeiou")
SHORT_WORDS = word_set("""
    able ace acid acre act ad add age aged aid aim air all ally alt also amp and ant any apex app
    arc arch area arm army art ask atom aunt auto away axis axle baby back bad bag bait bake ball
    ban band bank bar bark barn base bass bat bath bay bead beak beam bean bear beat bed bee beef
    beer bell belt bend best bet bias bid big bike bill bin bird birth bit bite blue boar boat boil
    body bolt bomb bond bone book boom boot born boss both bow bowl box boy brew bug bulb bulk
    bull bus busy buy buyer by byte cab cafe cage cake calf call calm camp can cane car card
    care cart case cash cast cat cause cave cell chef chip city claim clan clay clef club clue coach
    coal coat code coin cold come cook cool cope copy cord core cork corn cost cow crew crop cube
    cup cure curl cut cyan cycle dam damp dark data date dawn day dead deaf deal dean dear debt
    deck deed deep deer demo deny desk dial dice die diet dim dip dirt disc dish disk dive dock
    dog doll dome done door dorm dose down draw drop drug drum dry dual duck due duel dusk dust
    duty dye each ear earn ease east easy eat echo edge edit egg else empty end envy epic era eve
    even ever exam exit expo eye face fact fade fail fair fall fame fan far fare farm fast fate
    fax fear feat fed fee feed feel feet fell felt few file fill film find fine fire firm fish
    fit five flag flap flat flaw flow foal foam fold folk font food foot form fort four fox free
    fret frog from fuel full fun fund fur game gap gas gate gear gem gene gift gig girl give glad
    glow glue goal goat god gold golf good gown grid grip grit gross group gulf gun guy gym hair
    half hall halt hand hang hard harm hat haul have hawk hay head heap heat heel heir help hen
    herb herd here hero hide high hike hill hire hit hive hold hole home hood hook hope horn host
    hot hour hub hue hull hunt hurt hut ice icon idea idle inch index ink inn ion iron item ivy
    jail jam jar jaw jazz jet job join joke jump jury just keel keep kept key kick kid kin kind
    king kiss kit kite knee knot lab lace lack lady lag lake lamb lamp land lane lap last late law
    lawn lay layer lead leaf lean leap left leg less let level lid life lift light lily lime line
    link lion lip list lit live load loan lock log logo long look loop lord lose loss lost lot
    loud love low luck lung lure mac made mail main make male mall malt man many map mark mask
    mass mast mat mate math max meal mean meat meet meld melt men menu mesh met mild mile milk
    mill mind mine mint miss mix mob mode mold mole mood moon more moss most moth move mud mule
    must mute name nap navy near neck need nest net new news next nice nick node none noon north
    nose note noun nova null oak oar oath oats odd ode off oil old one only open opt oral orb ore
    out oven over own owner ox pace pack pad page paid pain pair palm pan panel pants par park
    part party pass past path pawn pay peak pear peer pen pet phone piano pick pie pier pig pile
    pill pin pine pink pint pipe pit pitch plan play plea plot plug plum plus pod poem poet point
    pole poll pond pool poor pop pope pork port pose post pot pour pub pull pulp pump pupil pure
    push put quay quiz race rack radio raft rail rain ram ramp rank rare rat rate raw ray read
    real rear red reed reef reel rent rest rice rich ride rift right rim ring rink riot ripe rise
    risk rite road roast rock rod role roll roof room root rope rose row royal rub rug rule run
    rush rust sack safe sage said sail sale salt same sand save saw scan sea seal seam seat seed
    seek self sell send sent set sew sex shed sheep ship shoe shop shot show shut sick side sign
    silk sill silo sin sink site size ski skill skin skip sky slab slip slot slow slug snow soap
    sock soft soil sold sole solo some son song soon sort soul soup sour sow span spin spot spy
    staff stage stain star stay stem step stew stir stop such suit sum sun sure swan swap swim tag
    tail take tale talk tall tan tank tap tape task taste tax taxi tea teal team tear teen tell
    ten tent term test text than that then they thin this tick tide tie tier tile till timber time
    tin tint tiny tip tire toe toll tomb ton tone tool top torn toss total tour town toy trap tray
    tree trim trip true tub tube tug tune turf turn tutor twin two tyre unit upon urn use used
    user van vane vary vase vat vein vent very vest vet via vice view vine visa visit void volt
    vote wage wait walk wall want ward ware warm wash watt wave wax way weak wear web weed week
    well went west wet what when where whey who why wide wife wild will win wind wine wing wire
    wise wish wit wolf wood wool word work worm wrap yard yarn year yes yet yield yoga young youth
    zero zinc zone zoo wk pct avg max min sum sub non pre post per day sun mon
    acts ages arms bags bars beds bids bits bugs cars cats cows days dogs ears eggs eyes fans fees
    gems guns hits ices inks inns jobs keys kids labs laps laws legs logs lots maps nets oils pads
    pays pens pets pins pots pubs rays rows runs sets tabs tags taps taxes ties tips tons toys vans
    votes ways wins zoos lid sku spa dna url vip
    begun did does goes got gave grew knew knit laid paid rode rose sang sank seen shot shown slid
    sung swam swum took tore wore won woke lent led hung held hid fed dug
    type with tare bio sown wing lane bunk cask kegs keg mash hops hop dose ward
    fly wifi was were are has have had can does did is be do its his her our own vip pub zip sea
    ski spa bay fog mud ply cod eel bee ant elk hen cub pup ewe ram sow hog gnu emu yak
    lazy cosy tidy ugly wavy oily icy airy sick numb pale mad sad shy sly dry wry raw
    area bonus quota squad depot genre album chord tempo verse novel essay issue topic
""")
"""Usual words of up to four letters and some longer ones; of others nobody knows."""

_WRITTEN_OUT = word_set("""
    absence academic accepted accident account accuracy acquired action active activity actual
    address adjusted administration admission adult agency agreement aircraft airline airport album
    alcohol allergy allocation altitude amount animal annual answer apartment applicant application
    appointment approved architect arrival article artist assessment asset assignment assistant
    association athlete attendance attendee attempt attribute auction audience author authority
    available average award balance barcode battery bedroom beginning behaviour benefit birthday
    booking border bottle branch breed bridge broker brother budget building business cabin
    calendar calibration campaign campus cancelled candidate capacity captain capital caption cargo
    carrier category caterer centre certificate certified chairman champion change channel chapter
    character charge checked chemical chief children choice church circuit citizen claim class
    classification clearance client climate clinic closed coach collection college colour column
    comment commission committee common company competition complaint completed component
    composer computer concert condition conference confirmed connection consultant contact
    container content contract contributor control conversion copyright corporate correct cost
    council counter country county course court cover coverage created credit critic criteria
    culture currency current curriculum customer damage daughter deadline debit decision default
    defect degree delay delivery demand density department departure deposit depth description
    design designer destination detail developer device diagnosis diameter difference digital
    dimension direction director disability discharge discipline discount discovered disease
    dispatch display distance distribution district division doctor document domain domestic
    donation donor dosage draft driver duration earnings economy edition editor education
    efficiency effective elected election electric electricity elevation eligible emergency emission
    employee employer employment engine engineer enquiry enrolment entrance entry environment
    episode equipment error established estimate evaluation event examination exchange executive
    exercise exhibition expected expense experience expired expiry export exposure external
    facility factory faculty failed failure family father feature federal feedback female festival
    fiction figure final finance financial finish flight floor folder football forecast foreign
    format formula founded founder fraction frequency friend function furniture future gallery
    garden gender general generation gradient graduation grammar grant gravity gross growth
    guarantee guardian guest guide harbour hardware health hearing heating height heritage
    historic history holder holiday horizontal horse hospital hotel household housing humidity
    husband identifier illness image impact import incident income increase indicator individual
    industry inspection inspector installation installed institute institution instruction
    instructor instrument insurance integer intensity interest internal international interval
    interview introduced inventory investment investor invoice island journal journey judge
    judgement kitchen label laboratory labour language latitude launch lawyer leader league
    learning leave lecture length lesson letter level liability library licence limit literature
    loading local location locked longitude luggage machine magazine magnitude maintenance manager
    manufacturer manufactured margin marital market marketing married master match material maximum
    measure measurement medal medical medicine medium meeting member membership merchant message
    meter method mileage minimum minister minister ministry minute mobile model modified module
    monitor month monthly mortgage mother motor mountain movement museum music national nationality
    nature negative network neutral number nurse nutrition object observation occupation occurred
    offence offer office officer official opened opening operating operation operator opinion
    option orchestra order organisation origin original outcome output overall owner package
    packaged painting parameter parcel parent parking partner party passenger passport password
    patient pattern payment penalty pending pension percent percentage performance period permanent
    permit permission person personal pharmacy phone physical physician picture pieces pilot
    pitcher place plaintiff planned planet plant plate platform player playlist pledge point police
    policy political population portfolio position positive postal posted potential power practice
    precipitation preferred premium prepared prescription presentation president pressure previous
    price primary principal printed priority private probability procedure process processed
    produced producer product production profession professor profile profit program programme
    progress project promotion property proposal protein protocol provider province public
    publication published publisher purchase purpose quality quantity quarter question queue
    quotation radius rainfall range ranking rating reaction reading reason receipt received
    recipe recipient record recorded recruitment reduced redundancy referee referral refund
    region regional register registration regular relation release released religion remaining
    remark rental repair repeat replaced reply report reported request required research reserved
    reservation resident resolution resource response responsible restaurant result retail retired
    return revenue review revision reward rotation route salary sample satellite savings
    schedule scheduled school science scientist score screen season seating second secondary
    secretary section sector security segment semester seminar seniority sensor sentence sequence
    serial series service session settlement severity shelf shift shipment shipped shipping short
    signature single sister skill software soldier source speaker special species specimen speed
    sponsor sport spouse square stadium staff stage standard standing start starting state
    statement station statistic status stock storage store strategy street strength string student
    studio style subject submission submitted subscriber subscription subtotal success suite
    summary supervisor supplier supply support surface surgeon surgery surname survey suspended
    symbol symptom system table target tariff teacher technical technician technology telephone
    temperature template temporary tenant tension terminal territory theatre therapy thickness
    threshold ticket timezone title tonnage topic torque total tournament tracking trade trading
    traffic trailer trainer training transaction transfer transport travel treatment trial
    trigger triple truck trust tuition turnover tutor update updated upload urban urgent usage
    username utility vacancy vacation vaccine valid valley valuation value variance variety vehicle
    vendor venue verified version vertical vessel veteran victim video village violation visitor
    visibility vitamin volume volunteer voltage voucher voyage waiting warehouse warning warranty
    waste weather website wedding weekday weekend weekly weight welfare width window winner winter
    withdrawal witness worker workshop writer written yearly
    kickoff purple planting football handball basketball baseball
""")
"""Usual words of names from which shorter ones are made; the more, the fewer are written out."""


def consonants_of(word: str) -> str:
    """A word without its vowels but for a first one, and without double letters.

    >>> consonants_of("attendance"), consonants_of("address")
    ('atndnc', 'adrs')
    """
    kept = word[:1]
    for letter in word[1:]:
        if letter not in _VOWELS and letter != kept[-1]:
            kept += letter
    return kept


_BY_CONSONANTS: dict[str, set[str]] = defaultdict(set)
for _word in _WRITTEN_OUT | {word for word in SHORT_WORDS if len(word) > 3}:
    _BY_CONSONANTS[consonants_of(_word)].add(_word)


@lru_cache(maxsize=8192)
def written_out(part: str) -> str:
    """The word that a shortened part stands for; "" if it is a word, or none or several fit.

    >>> written_out("trng"), written_out("strt"), written_out("shpmnt"), written_out("town")
    ('training', '', 'shipment', '')
    """
    if len(part) < 4 or not part.isalpha() or is_usual(part):
        return ""
    if _VOWELS & set(part[1:]):  # the head of a word may be a word itself, as of "household"
        return ""
    bare = consonants_of(part)
    exact = _BY_CONSONANTS.get(bare, set())
    longer = {w for key, words in _BY_CONSONANTS.items() if key.startswith(bare) for w in words}
    fitting = exact or longer
    return next(iter(fitting)) if len(fitting) == 1 else ""


@lru_cache(maxsize=8192)
def is_usual(part: str) -> bool:
    """Whether a part is a usual word, or one with a usual ending.

    >>> is_usual("town"), is_usual("fees"), is_usual("fnd")
    (True, True, False)
    """
    if part in SHORT_WORDS or part in _WRITTEN_OUT:
        return True
    for ending in ("s", "es", "d", "ed", "ing", "er", "r"):
        stem = part.removesuffix(ending)
        is_whole = ending not in ("d", "r") or stem.endswith("e")
        if (
            stem != part
            and len(stem) > 2
            and is_whole
            and (stem in SHORT_WORDS or stem in _WRITTEN_OUT)
        ):
            return True
    return False
