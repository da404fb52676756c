"""A PNG as it stands in a page: inside the text, with a palette, a third of its size."""

import base64
import io

from PIL import Image


def embed(path):
    """The picture as a data URI, and its width in inches."""
    original = path.read_bytes()
    with Image.open(io.BytesIO(original)) as picture:
        dpi = picture.info.get("dpi", (200, 200))[0] or 200
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.convert("RGBA").getchannel("A"))
    # No dithering: it would put grains into flat colours, and make the file larger.
    small = io.BytesIO()
    flat.quantize(256, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    data = min(small.getvalue(), original, key=len)
    return "data:image/png;base64," + base64.b64encode(data).decode(), flat.width / dpi
