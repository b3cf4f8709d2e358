"""The notebook and the README's examples run as they stand."""
import json
import os
import re
import shutil
import unittest

from support import PACKAGE, Case

CHECKOUT = PACKAGE.parent


class Pages(Case):
    def run_in(self, folder, blocks):
        """Runs blocks of code in order, in one namespace, in `folder`."""
        before, space = os.getcwd(), {}
        os.chdir(folder)
        try:
            for block in blocks:
                exec(compile(block, "<page>", "exec"), space)
        finally:
            os.chdir(before)
        return space

    def test_notebook(self):
        place = self.folder / "examples" / "python"
        place.mkdir(parents=True)
        (self.folder / "data").mkdir()
        shutil.copy(CHECKOUT / "data" / "digits.csv", self.folder / "data")
        cells = json.loads((CHECKOUT / "examples" / "python" / "tune.ipynb").read_text(encoding="utf-8"))["cells"]
        found = self.run_in(place, ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"])
        self.assertGreater(found["study"].best.value, 0.8)

    def test_readme(self):
        text = (PACKAGE / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 2)
        found = self.run_in(self.folder, blocks)
        self.assertIsNotNone(found["study"].best.value)


if __name__ == "__main__":
    unittest.main()
