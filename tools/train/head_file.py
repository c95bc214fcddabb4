"""The file of a model with a head that guesses, made of the model's and of a part that was trained for it
(docs/formats/head.md).
"""
import gguf_file
import gguf_reader


def join(model, part, out):
    """`model` and `part`: gguf_reader.Gguf. Returns the number of tensors."""
    refuse = gguf_reader.NotReadable
    if part.metadata.get("general.type") != "head":
        raise refuse(f"{part.path}: general.type is '{part.metadata.get('general.type', '')}', expected head")
    wanted, found = part.metadata.get("head.model.sha256"), model.sha256()
    if wanted != found:
        raise refuse(f"{model.path}: SHA-256 {found}; {part.path} is for {part.metadata.get('head.model.name')} with {wanted}")
    arch, layers = model.architecture(), model.key("block_count")
    for name in part.tensors:
        if not name.startswith(f"blk.{layers}."):
            raise refuse(f"{part.path}: tensor '{name}', expected blk.{layers}.… alone")
    data = model.data[model.begin:model.begin + max(each.offset + each.size for each in model.tensors.values())]
    padding = bytes(-len(data) % gguf_file.ALIGNMENT)
    entries = [(key, gguf_file.stored(layers + 1) if key == f"{arch}.block_count" else value)
               for key, value in model.entries]
    entries += [(key, value) for key, value in part.entries if key.startswith(f"{arch}.")]
    tensors = [(each.name, each.shape, each.kind, each.offset + moved)
               for file, moved in ((model, 0), (part, len(data) + len(padding))) for each in file.tensors.values()]
    gguf_file.write_whole(out, (gguf_file.begin(entries, tensors), data, padding, part.data[part.begin:]))
    return len(tensors)
