#!/usr/bin/env python3
"""Check that the stated minimum Rust version is not below what a dependency states."""

import json
import subprocess
import sys


def version(text):
    return tuple(int(part) for part in (text + ".0.0").split(".")[:3])


metadata = json.loads(subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked"],
                                     check=True, capture_output=True, text=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = metadata["resolve"]["root"]
stated = packages[root]["rust_version"]

# What a build of the tool needs: development dependencies are for contributors.
needed, waiting = set(), [root]
while waiting:
    identity = waiting.pop()
    if identity in needed:
        continue
    needed.add(identity)
    waiting += [dep["pkg"] for dep in nodes[identity]["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]

newer = [f"{packages[identity]['name']} needs {packages[identity]['rust_version']}" for identity in needed
         if version(packages[identity]["rust_version"] or "1.0") > version(stated)]
if newer:
    sys.exit(f"rust-version is {stated}, but {', '.join(newer)}")
print(f"rust-version {stated} covers {len(needed)} packages")
