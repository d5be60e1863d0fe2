"""Records what is new: ``python -m tb.vectors [--renew]``."""

import json
import sys

import actcodec
from tb import vectors

renews = "--renew" in sys.argv[1:]
known = {} if renews else vectors.recorded()
digests = {name: known.get(name) or vectors.digests(*case) for name, *case in vectors.cases()}
vectors.FILES.mkdir(exist_ok=True)
for path, mode, options in vectors.files():
    if renews or not path.exists():
        actcodec.save(path, actcodec.compress(vectors.tensor(vectors.SHAPES[0]), mode, **options))
for path, *_ in (*vectors.files(), *vectors.old_files()):
    digests[path.name] = known.get(path.name) or vectors.digest(actcodec.decompress(actcodec.load(path)))
vectors.DIGESTS.write_text(json.dumps(digests, indent=0) + "\n")
print(f"{len(digests)} digests in {vectors.DIGESTS}")
