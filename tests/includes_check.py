"""scripts/check_includes goes red for every include that its table forbids, and for nothing that it allows; and for a
header that no README names."""

import importlib.machinery
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("check_includes", str(ROOT / "scripts/check_includes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_includes", loader))
    loader.exec_module(module)
    return module


def main():
    rule = load()
    forbidden = allowed = 0
    for room, others in rule.ROOMS.items():
        assert list((ROOT / room).glob("*.[ch]*")), f"{room}: a room without a file"
        for other in rule.ROOMS:
            headers = [f"{other}/header.hpp", *(face for face, owner in rule.FACE_OF.items() if owner == other)]
            for header in headers:
                found = rule.offences(f"{room}/source.cpp", f'#pragma once\n#include "{header}"\n')
                wanted = other not in {room, "base", *others.split()}
                assert bool(found) == wanted, f"{room} includes {header}: {found}"
                forbidden, allowed = forbidden + wanted, allowed + (not wanted)
        for library, rooms in {"torch/torch.h": "ATen", "ATen/ATen.h": "ATen", "c10/core/Device.h": "ATen",
                               "sqlite3.h": "sqlite3", "yaml-cpp/yaml.h": "yaml", "libxsmm.h": "libxsmm",
                               "cuda_runtime.h": "cuda_runtime"}.items():
            [may] = [value for key, value in rule.LIBRARIES.items() if rooms in key]
            found = rule.offences(f"{room}/source.cpp", f"#include <{library}>\n")
            wanted = room not in may.split()
            assert bool(found) == wanted, f"{room} includes {library}: {found}"
            forbidden, allowed = forbidden + wanted, allowed + (not wanted)
    assert rule.offences("base/source.cpp", '#include "tests/noise.hpp"\n'), "tests are no part of the house"
    assert rule.offences("base/source.cpp", "#include <engine/config.hpp>\n"), "an include in angle brackets"
    for face in rule.FACE_OF:
        assert (ROOT / face).exists(), f"{face}: FACES names a header that is not there"
    for header in (ROOT / "fusion").glob("*.hpp"):
        assert f"fusion/{header.name}" in rule.FACE_OF, f"{header.name}: a face without a room"
    for header in (ROOT / "base").glob("*.hpp"):
        readme = (ROOT / "base/README.md").read_text()
        assert not rule.unnamed(f"base/{header.name}", readme), f"{header.name}: its README does not name it"
        without = readme.replace(header.name, "other.hpp")
        assert rule.unnamed(f"base/{header.name}", without), f"{header.name}: that no README names it is not seen"
    assert not rule.circles()
    rule.ROOMS["base"] = "engine/cli"
    assert rule.circles(), "a circle is not seen"
    print(f"{len(rule.ROOMS)} rooms: {forbidden} forbidden includes are red, {allowed} allowed ones are not")


if __name__ == "__main__":
    main()
