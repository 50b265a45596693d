"""Protocol files for the reference: TOML to settings, refusing what it does not know.

docs/protocols.md says what each setting means. A setting that is unknown, has a bad value or cannot
stand beside another is a ValueError: a reference that ignored it would say wrong keys.
"""

import math
import tomllib
import unicodedata

from reference_crs import named

ENVELOPE = ("webhook_id", "delivery_id", "received_at", "timestamp",
            "x-signature", "x-hub-signature-256", "attempt")
DECIMALS = range(324)
DIGEST_BYTES = {"blake2b": 64, "sha256": 32}

# The settings that are one of a few words; the first one is the default.
WORDS = {
    "event": {"duplicate_names": ("last", "reject"), "non_finite": ("accept", "reject")},
    "geometry": {"identity": ("serialization", "shape"), "crs": ("as-is", "wgs84")},
    "numbers": {"where": ("everywhere", "coordinates"), "negative_zero": ("keep", "fold"), "integral": ("keep", "unify")},
    "canonical": {"scheme": ("python-json", "jcs", "bytes"), "members": ("sorted", "as-written"),
                  "separators": ("compact", "spaced"), "non_ascii": ("utf8", "escape")},
    "key": {"hash": tuple(DIGEST_BYTES)},
}
# The others, and the type of each.
TYPES = {
    "event": {"strip": list, "add": dict},
    "geometry": {"source_crs": str},
    "numbers": {"decimals": int},
    "key": {"bytes": int, "prefix": str},
}


class Settings:
    """All that decides which events have one key, with the defaults of the command line."""

    def __init__(self, decimals=8, hash="blake2b", key_bytes=16, strip=ENVELOPE, add=(), select=(),
                 duplicate_names="last", non_finite="accept", identity="serialization", crs="as-is", source_crs="EPSG:4326", where="everywhere",
                 negative_zero="keep", integral="keep", scheme="python-json", members="sorted",
                 separators="compact", non_ascii="utf8", prefix=""):
        self.decimals = decimals
        self.hash = hash
        self.key_bytes = key_bytes
        # A name is a pointer of one token.
        self.strip = frozenset(tokens_of(entry) if entry.startswith("/") else (entry,) for entry in strip)
        # A TOML table has no order, so constants are put in by their names.
        self.add = dict(sorted(dict(add).items()))
        self.select = [selected(table) for table in select]
        self.duplicate_names = "reject" if scheme == "jcs" else duplicate_names
        self.non_finite = "reject" if scheme == "jcs" else non_finite
        self.identity = identity
        self.crs = crs
        self.source_crs = named(source_crs)
        self.where = where
        self.negative_zero = negative_zero
        self.integral = integral
        self.scheme = scheme
        self.members = members
        self.separators = {"compact": (",", ":"), "spaced": (", ", ": ")}[separators]
        self.ensure_ascii = non_ascii == "escape"
        self.prefix = prefix

    @classmethod
    def from_toml(cls, text):
        file = tomllib.loads(text)
        if not isinstance(file.pop("name", None), str) or not isinstance(file.pop("doc", ""), str):
            raise ValueError("a protocol has a name, and may have a doc")
        select = file.pop("select", [])
        for table, settings in file.items():
            if table not in WORDS or not isinstance(settings, dict):
                raise ValueError(f"unknown setting: {table}")
            for name, value in settings.items():
                check_setting(table, name, value)
        check_together(file, select)
        # Without a file's word, nothing is stripped and nothing rounded.
        options = {"decimals": None, "strip": (), "select": select}
        for settings in file.values():
            options |= settings
        options["key_bytes"] = options.pop("bytes", 16)
        return cls(**options)


def check_setting(table, name, value):
    words = WORDS.get(table, {}).get(name)
    type_of_value = TYPES.get(table, {}).get(name)
    if words is None and type_of_value is None:
        raise ValueError(f"unknown setting: {table}.{name}")
    is_allowed = value in words if words else type(value) is type_of_value
    if name == "decimals":
        is_allowed = is_allowed and value in DECIMALS
    if name == "bytes":
        is_allowed = is_allowed and 0 <= value <= max(DIGEST_BYTES.values())
    if name == "prefix":
        is_allowed = is_allowed and all(unicodedata.category(character) != "Cc" for character in value)
    if name == "strip":
        is_allowed = is_allowed and all(isinstance(entry, str) for entry in value)
    if name == "add":
        is_allowed = is_allowed and all(is_constant(constant) and constant != [] for constant in value.values())
    if not is_allowed:
        raise ValueError(f"{table}.{name} cannot be {value!r}")


def check_together(file, select):
    """Refuses what cannot be together."""
    names = {f"{table}.{name}" for table, settings in file.items() for name in settings}
    scheme = file.get("canonical", {}).get("scheme", "python-json")
    event, key = file.get("event", {}), file.get("key", {})
    excluded = set()
    if scheme == "bytes":
        excluded = {name for name in names if not name.startswith("key.")} - {"canonical.scheme"}
        if select:
            raise ValueError("scheme bytes selects nothing")
    if scheme == "jcs":
        excluded = {"canonical.members", "canonical.separators", "canonical.non_ascii", "numbers.negative_zero", "numbers.integral"}
        if event.get("duplicate_names") == "last" or event.get("non_finite") == "accept":
            raise ValueError("scheme jcs takes neither repeated names nor numbers that are not finite")
    if select:
        excluded |= {"event.strip", "event.add"}
    if "numbers.decimals" not in names:
        excluded |= {"numbers.where"}
    brings = file.get("geometry", {}).get("crs") == "wgs84"
    if not brings:
        excluded |= {"geometry.source_crs"}
    is_touched = brings or file.get("geometry", {}).get("identity") == "shape"
    if select and is_touched and file.get("numbers", {}).get("where") == "coordinates":
        raise ValueError("what is selected is not rounded as it is compared")
    if brings and "numbers.decimals" not in names:
        raise ValueError("what is computed has to be rounded")
    if excluded & names:
        raise ValueError(f"other settings leave no room for {sorted(excluded & names)}")
    if key.get("bytes", 0) > DIGEST_BYTES[key.get("hash", "blake2b")]:
        raise ValueError("a key is no longer than the digest")
    members = [table.get("member") for table in select]
    if any(members.count(member) > 1 for member in members):
        raise ValueError("a member is selected twice")


def is_constant(value):
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return value == [] or (isinstance(value, (str, int, float, bool)) and is_finite)


def tokens_of(pointer):
    """The reference tokens of a JSON Pointer (RFC 6901) to something inside the event."""
    tokens = pointer.split("/")
    for token in tokens:
        if "~" in token.replace("~0", "").replace("~1", ""):
            raise ValueError(f"{pointer!r}: ~ stands before 0 or 1 only")
    if len(tokens) < 2 or tokens[0]:
        raise ValueError(f"{pointer!r} is no JSON Pointer into an event")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens[1:])


def selected(table):
    """A `[[select]]` table as member, sources and transforms. A source is the tokens of a pointer,
    with the constant that stands for what is missing; or no tokens, and a constant."""
    unknown = table.keys() - {"member", "pointer", "default", "first_of", "transforms"}
    if unknown or not isinstance(table.get("member"), str):
        raise ValueError(f"no selected member: {table}")
    if table.keys() & {"pointer", "default", "first_of"} not in ({"pointer"}, {"pointer", "default"}, {"first_of"}):
        raise ValueError(f"a selected member has a pointer, perhaps with a default, or a first_of: {table}")
    if table.get("first_of") == []:
        raise ValueError(f"there is no first of nothing: {table}")
    if "pointer" in table:
        sources = [(tokens_of(table["pointer"]), table.get("default"))]
    else:
        sources = [source(entry) for entry in table["first_of"]]
    if any(constant is not None and not is_constant(constant) for _, constant in sources):
        raise ValueError(f"no constant: {table}")
    transforms = table.get("transforms", [])
    if len(transforms) == 1 and isinstance(transforms[0], dict) and [*transforms[0]] == ["sort_by"]:
        return table["member"], sources, [{"sort_by": tokens_of(transforms[0]["sort_by"])}]
    for transform in transforms:
        is_word = transform in ("strip", "lower", "nfc", "str")
        is_fixed = (isinstance(transform, dict) and [*transform] == ["fixed"]
                    and type(transform["fixed"]) is int and transform["fixed"] in DECIMALS)
        if not is_word and not is_fixed:
            raise ValueError(f"no transform: {transform}")
    return table["member"], sources, transforms


def source(entry):
    if isinstance(entry, str):
        return tokens_of(entry), None
    if entry.keys() != {"value"}:
        raise ValueError(f"a source is a JSON Pointer, or a table with a value: {entry}")
    return None, entry["value"]
