"""The text behind windows of tokens: what two models of different vocabularies can be asked about alike."""

BETWEEN = "\n\n"  # of windows, and of the documents in one


def bytes_of_pieces(pieces):
    """By token: its bytes, or None if it stands for no text. `pieces`: a SentencePieceProcessor."""
    def one(i):
        if pieces.is_control(i) or pieces.is_unknown(i):
            return None
        piece = pieces.id_to_piece(i)
        return bytes([int(piece[3:5], 16)]) if pieces.is_byte(i) else piece.replace("▁", " ").encode()
    return [one(i) for i in range(pieces.get_piece_size())]


def text(windows, piece_bytes):
    """Documents end at tokens without text; the space that a tokenizer puts before a document is no text,
    and neither is half a character at a window's edge."""
    parts = []
    for window in windows:
        documents, begins = [b""], False
        for data in (piece_bytes[int(token)] for token in window):
            if data is None:
                documents.append(b"")
            else:
                documents[-1] += data[1:] if begins and data.startswith(b" ") else data
            begins = data is None
        parts += [each.decode("utf-8", "ignore") for each in documents if each]
    return BETWEEN.join(parts)
