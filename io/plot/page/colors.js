
// ---- Colours

const partsOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const viridis = contents.viridis.map(partsOf), redBlue = contents.red_blue.map(partsOf);
const noNumber = partsOf(contents.no_number), droppedColor = partsOf(contents.dropped);

/// The value of full colour in a row of a matrix of `of`.
function fullOf(of, part, row) {
    const {full} = of.scales[chosen.scale];
    if (full > 0) return full;
    let peak = 0;
    const begin = row * of.columns.size;
    for (let i = begin; i < begin + of.columns.size; ++i) {
        const size = Math.abs(part.numbers[i]);
        if (size > peak && !part.flags[i]) peak = size;
    }
    return peak;
}

/// 0 to 1, or -1 to 1 if colours diverge; beyond that if a number exceeds full colour. 0 only for 0.
function positionOf(of, value, full) {
    if (full === 0 || value === 0) return 0;
    const share = value / full, least = 1e-30;
    const size = chosen.scale === 'log' ? 1 + Math.log(Math.abs(share)) / Math.log(contents.log_range)
                                        : Math.abs(share);
    return Math.sign(share) * Math.max(size, least);
}

/// Which of `steps` + 1 colours is nearest to `position`.
function stepAt(of, position, steps) {
    const part = of.diverging ? (position + 1) / 2 : position;
    return Math.floor(Math.min(Math.max(part, 0), 1) * steps + 0.5);
}

/// The cell colour nearest to `position`: red, green and blue.
function colorAt(of, position) {
    if (of.dropped && position === 0) return droppedColor;
    const colors = of.diverging ? redBlue : viridis;
    return colors[stepAt(of, position, colors.length - 1)];
}

/// For width x height pixels, each the strongest of its cells; NaN: masked, Infinity: no number.
/// Within a row positions are monotonic in magnitude, so only the largest number is placed on the
/// scale.
function positionsOf(of, part, width = of.columns.size, height = of.rows.size) {
    const {numbers, flags} = part, columns = of.columns.size, rows = of.rows.size;
    const lefts = Uint32Array.from({length: width}, (_, x) => Math.floor(x * columns / width));
    const rights = Uint32Array.from({length: width}, (_, x) => Math.ceil((x + 1) * columns / width));
    const strongest = new Float32Array(width * height).fill(NaN);
    for (let y = 0; y < height; ++y)
        for (let row = Math.floor(y * rows / height); row < Math.ceil((y + 1) * rows / height); ++row) {
            const full = fullOf(of, part, row), begin = row * columns;
            for (let x = 0, pixel = y * width; x < width; ++x, ++pixel) {
                let most = NaN, size = -1;
                for (let i = begin + lefts[x]; i < begin + rights[x]; ++i) {
                    if (flags[i] || Math.abs(numbers[i]) <= size) continue;
                    most = numbers[i];
                    size = most - most === 0 ? Math.abs(most) : Infinity;
                }
                if (size < 0) continue;
                const position = size < Infinity ? positionOf(of, most, full) : Infinity, old = strongest[pixel];
                if (old !== old || Math.abs(position) > Math.abs(old)) strongest[pixel] = position;
            }
        }
    return strongest;
}

/// A colour as four bytes of an image.
const packed = ([red, green, blue]) => new Uint32Array(Uint8Array.of(red, green, blue, 255).buffer)[0];
const packedColors = new Map([[false, viridis.map(packed)], [true, redBlue.map(packed)]]);

/// One pixel per cell, or at most `width` x `height`. Masked cells are transparent.
function drawRaster(target, of, part, width, height) {
    target.width = Math.max(1, Math.min(of.columns.size, Math.round(width)));
    target.height = Math.max(1, Math.min(of.rows.size, Math.round(height)));
    const context = target.getContext('2d');
    const image = context.createImageData(target.width, target.height);
    const pixels = new Uint32Array(image.data.buffer), colors = packedColors.get(of.diverging);
    const positions = positionsOf(of, part, target.width, target.height);
    const steps = colors.length - 1, none = packed(noNumber), dropped = packed(droppedColor);
    for (let i = 0; i < pixels.length; ++i) {
        const position = positions[i];
        if (position !== position) continue;
        pixels[i] = position === Infinity ? none
            : of.dropped && position === 0 ? dropped : colors[stepAt(of, position, steps)];
    }
    context.putImageData(image, 0, 0);
}

/// In a row, one pixel each.
function drawColors(target, colors) {
    [target.width, target.height] = [colors.length, 1];
    const context = target.getContext('2d'), image = context.createImageData(colors.length, 1);
    colors.forEach((color, i) => image.data.set([...color, 255], 4 * i));
    context.putImageData(image, 0, 0);
}

const cssColors = new Map();  // until the background changes
function cssColor(name) {
    if (!cssColors.has(name))
        cssColors.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return cssColors.get(name);
}

/// Black or white, whichever has more contrast on a colour.
function inkOn(color) {
    const [red, green, blue] = color.map((byte) => {
        const x = byte / 255;
        return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

/// Colours of heads, distinguishable on light and dark backgrounds.
const fewHeads = ['#3b82c4', '#e07b1f', '#3a9e5c', '#d1495b', '#8e6bbf', '#8c6d5a', '#d667a6',
                  '#1fa3a3', '#a8a020', '#7a8694'];
const headColor = (head) => fewHeads[head] ?? `hsl(${Math.round(head * 137.5) % 360} 55% 52%)`;
