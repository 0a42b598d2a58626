// The data that the page carries, read as it is chosen.
'use strict';

const element = (id) => document.getElementById(id);
const contents = JSON.parse(element('contents').textContent);

const maps = [];  // each is parsed when it is first chosen

function mapAt(index) {
    if (!maps[index]) {
        const holder = element(`map-${index}`);
        maps[index] = JSON.parse(holder.textContent);
        maps[index].array = contents.arrays[index];
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

function floatsOf(values, isFloat32) {
    const Floats = isFloat32 ? Float32Array : Float64Array;
    if (Array.isArray(values)) return Floats.from(values, (value) => value ?? NaN);
    const bytes = new DataView(bytesOf(values).buffer), size = Floats.BYTES_PER_ELEMENT;
    const floats = new Floats(bytes.byteLength / size);
    for (let i = 0; i < floats.length; ++i)
        floats[i] = isFloat32 ? bytes.getFloat32(size * i, true) : bytes.getFloat64(size * i, true);
    return floats;
}

function flagsOf(blocked, size) {
    if (blocked === null) return new Uint8Array(size);
    if (Array.isArray(blocked)) return Uint8Array.from(blocked);
    const bits = bytesOf(blocked), flags = new Uint8Array(size);
    for (let i = 0; i < size; ++i) flags[i] = (bits[i >> 3] >> (i & 7)) & 1;
    return flags;
}

/// The numbers of a matrix of `of`, read when it is first looked at. Callers await it.
function numbersOf(of, index) {
    const part = of.panels[index];
    if (!part.numbers) {
        part.numbers = floatsOf(part.values, of.float32);
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
