"""The names of peers and the form of goldens that the scripts of this folder share."""
import importlib, importlib.metadata, json, os


def with_version(peer):
    """"torch.nn.L1Loss" as "torch.nn.L1Loss 2.15.0"; a formula of the script has no version."""
    package = peer.split(".")[0]
    return peer if package == "formula" else f"{peer} {importlib.metadata.version(package).split('+')[0]}"


def peer_of(thing):
    """The class of an object by the first module that has it: torch.optim.AdamW."""
    kind = type(thing)
    parts = kind.__module__.split(".")
    modules = (".".join(parts[:n]) for n in range(1, len(parts) + 1))
    module = next(m for m in modules if getattr(importlib.import_module(m), kind.__name__, None) is kind)
    return with_version(f"{module}.{kind.__name__}")


def write_lines(folder, name, cases):
    """A JSON object with a line for each case."""
    with open(os.path.join(folder, name), "w") as out:
        out.write("{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in cases.items()) + "\n}\n")
