// Draws the maps that the page carries. Nothing is requested, and labels are only ever text.
'use strict';

const element = (id) => document.getElementById(id);
const contents = JSON.parse(element('contents').textContent);
const view = element('view');
const canvas = element('map');
const pen = canvas.getContext('2d');
const raster = document.createElement('canvas');  // one pixel a cell

const widestLabel = 110, biggestCell = 64, labelRoom = 14;
const overhang = 7;  // of the labels of small cells at the edges
const font = '12px system-ui, "DejaVu Sans", sans-serif';

let map;            // the array that is shown
let panel = 0;      // which of its matrices
let scale = contents.scale;
let cursor = {row: 0, column: 0};
let isPointing = false;  // the cursor has been somewhere
let barRow = null;
let zoom = 0;            // cells are 2^zoom times as large as they fit
let layout = null;

// ---- The data

const maps = [];  // each is parsed when it is first chosen

function mapAt(index) {
    if (!maps[index]) {
        const holder = element(`map-${index}`);
        maps[index] = JSON.parse(holder.textContent);
        holder.remove();
    }
    return maps[index];
}

function bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
    return bytes;
}

function floatsOf(values) {
    const Floats = map.float32 ? Float32Array : Float64Array;
    if (Array.isArray(values)) return Floats.from(values, (value) => value ?? NaN);
    const bytes = new DataView(bytesOf(values).buffer), size = Floats.BYTES_PER_ELEMENT;
    const floats = new Floats(bytes.byteLength / size);
    for (let i = 0; i < floats.length; ++i)
        floats[i] = map.float32 ? bytes.getFloat32(size * i, true) : bytes.getFloat64(size * i, true);
    return floats;
}

function flagsOf(blocked, size) {
    if (blocked === null) return new Uint8Array(size);
    if (Array.isArray(blocked)) return Uint8Array.from(blocked);
    const bits = bytesOf(blocked), flags = new Uint8Array(size);
    for (let i = 0; i < size; ++i) flags[i] = (bits[i >> 3] >> (i & 7)) & 1;
    return flags;
}

/// The numbers of a matrix, read when it is first looked at.
function numbersOf(index) {
    const part = map.panels[index];
    if (!part.numbers) {
        part.numbers = floatsOf(part.values);
        part.flags = flagsOf(part.blocked, part.numbers.length);
        part.hasBlocked = part.blocked !== null;
        part.values = part.blocked = null;
    }
    return part;
}

/// The shortest decimal that reads back as the same float32 or float64.
function shortest(value) {
    if (Object.is(value, -0)) return '-0';
    if (!map.float32) return String(value);
    for (let digits = 1; digits < 9; ++digits) {
        const text = value.toPrecision(digits);
        if (Math.fround(Number(text)) === value) return String(Number(text));
    }
    return String(Number(value.toPrecision(9)));
}

// ---- Colours

const partsOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const viridis = contents.viridis.map(partsOf), redBlue = contents.red_blue.map(partsOf);
const noNumber = partsOf(contents.no_number);

/// What full colour stands for in a row.
function fullOf(part, row) {
    if (scale === 'fixed' && !map.diverging) return 1;
    if (scale !== 'row') return map.peak;
    let peak = 0;
    const begin = row * map.columns.size;
    for (let i = begin; i < begin + map.columns.size; ++i) {
        const size = Math.abs(part.numbers[i]);
        if (size > peak && !part.flags[i]) peak = size;
    }
    return peak;
}

/// 0 to 1, or -1 to 1 where colours go both ways.
function positionOf(value, full) {
    if (full === 0) return 0;
    const share = Math.min(Math.max(value / full, map.diverging ? -1 : 0), 1);
    if (scale !== 'log' || share === 0) return share;
    const size = 1 + Math.log(Math.abs(share)) / Math.log(contents.log_range);
    return Math.sign(share) * Math.max(size, 0);
}

/// The cell colour nearest to `position`: red, green and blue.
function colorAt(position) {
    const colors = map.diverging ? redBlue : viridis;
    const part = map.diverging ? (position + 1) / 2 : position;
    return colors[Math.floor(part * (colors.length - 1) + 0.5)];
}

/// One pixel a cell, blocked ones transparent. Says whether there are cells without a number.
function drawRaster(target, index) {
    const part = numbersOf(index), {numbers, flags} = part;
    const rows = map.rows.size, columns = map.columns.size;
    target.width = columns;
    target.height = rows;
    const context = target.getContext('2d');
    const image = context.createImageData(columns, rows);
    let lacksNumber = false;
    for (let row = 0, i = 0; row < rows; ++row) {
        const full = fullOf(part, row);
        for (let column = 0; column < columns; ++column, ++i) {
            if (flags[i]) continue;
            if (Number.isFinite(numbers[i])) {
                image.data.set(colorAt(positionOf(numbers[i], full)), 4 * i);
            } else {
                image.data.set(noNumber, 4 * i);
                lacksNumber = true;
            }
            image.data[4 * i + 3] = 255;
        }
    }
    context.putImageData(image, 0, 0);
    return lacksNumber;
}

const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/// Diagonal lines, `period` pixels apart.
function hatching(context, period) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = period;
    const strokes = tile.getContext('2d');
    strokes.fillStyle = cssColor('--blocked-ground');
    strokes.fillRect(0, 0, period, period);
    strokes.strokeStyle = cssColor('--blocked-line');
    strokes.lineWidth = Math.max(1, period / 7);
    for (const shift of [-period, 0, period]) {
        strokes.moveTo(shift - 1, period + 1);
        strokes.lineTo(shift + period + 1, -1);
    }
    strokes.stroke();
    return context.createPattern(tile, 'repeat');
}

/// Black or white, whichever reads better on a colour.
function inkOn(color) {
    const [red, green, blue] = color.map((byte) => {
        const x = byte / 255;
        return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}

// ---- Labels as text

/// Characters that would not be seen, or would break the line, as pictures of themselves.
function visible(label) {
    const text = label.replace(/[\0-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
    return text === '' ? '(empty)' : text;
}

/// `query 3 “next”`: text and, for the token, an element of its own, so that its direction of
/// writing changes nothing around it.
function nameOf(side, index) {
    const parts = [`${side.axis} ${side.first + index * side.step}`];
    if (side.tokens) {
        const token = document.createElement('bdi');
        token.textContent = visible(side.labels[index]);
        parts.push(' “', token, '”');
    }
    return parts;
}

function numberText(index) {
    const part = numbersOf(panel);
    if (part.flags[index]) return 'blocked';
    return Number.isFinite(part.numbers[index]) ? shortest(part.numbers[index]) : 'no number';
}
