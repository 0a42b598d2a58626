// The data of the page, read when it is selected: written by io/plot/html.cpp, packed by
// io/plot/heat_map.hpp.
'use strict';

const element = (id) => document.getElementById(id);
const contents = JSON.parse(element('contents').textContent);

const maps = [];  // each is parsed when it is first selected

function mapAt(index) {
    if (!maps[index]) {
        const holder = element(`map-${index}`);
        maps[index] = JSON.parse(holder.textContent);
        maps[index].array = contents.arrays[index];
        maps[index].panels.forEach((part, panel) => { part.textAt = `map-${index}-${panel}`; });
        holder.remove();
    }
    return maps[index];
}

/// The bytes of a zlib stream in base64.
async function inflated(text) {
    const signs = atob(text), packed = new Uint8Array(signs.length);
    for (let i = 0; i < packed.length; ++i) packed[i] = signs.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/// Reads numbers that are not masked, each with `kept` bits of its mantissa.
async function unpack(text, kept, flags, numbers) {
    const [high, low] = await Promise.all(text.split(' ').map(inflated));
    let at = 0, bits = 0, held = 0;  // bits read but not used: the lowest `held`
    /// The next `count` bits, at most 24, followed by zeros: `width` bits.
    const take = (count, width) => {
        for (; held < count; held += 8) bits = bits << 8 | low[at++];
        held -= count;
        return (bits >>> held & (1 << count) - 1) << width - count;
    };
    const words = new Uint32Array(numbers.buffer), count = high.length / 2;
    for (let i = 0, next = 0; i < numbers.length; ++i) {
        if (flags[i]) continue;
        const start = high[count + next] << 8 | high[next++];
        if (numbers instanceof Float32Array) {
            words[i] = start << 23 | take(kept, 23);
            continue;
        }
        words[2 * i + 1] = start << 20 | take(Math.min(kept, 20), 20);
        const rest = Math.max(kept - 20, 0);
        words[2 * i] = take(Math.min(rest, 16), 16) << 16 | take(Math.max(rest - 16, 0), 16);
    }
}

async function readFlags(held, size) {
    if (Array.isArray(held)) return Uint8Array.from(held);
    const bytes = await inflated(held), flags = new Uint8Array(size);
    for (let i = 0; i < size; ++i) flags[i] = bytes[i >> 3] >> 7 - (i & 7) & 1;
    return flags;
}

/// A promise. Matrices side by side mostly share a mask.
function flagsOf(of, mask, size) {
    if (mask === null) return new Uint8Array(size);
    if (of.lastMask !== mask) {
        of.lastMask = mask;
        of.lastFlags = readFlags(of.masks[mask], size);
    }
    return of.lastFlags;
}

function lacksNumber(numbers, flags) {
    for (let i = 0; i < numbers.length; ++i)
        if (!(Math.abs(numbers[i]) < Infinity) && !flags[i]) return true;
    return false;
}

/// The text of the initial matrix precedes this script, the others follow it.
const firstText = `map-${contents.first}-0`;
const wholePage = new Promise((go) => addEventListener('DOMContentLoaded', go));
const isCut = () => document.readyState !== 'loading' && !element('end');
const hasCome = (id) => id === firstText || document.readyState !== 'loading';

const mostDecoded = 64e6;  // bytes of unpacked matrices that are cached
const decoded = new Map();  // least recently used first

async function decode(of, part, size) {
    if (!part.values && !hasCome(part.textAt)) await wholePage;
    const flags = await flagsOf(of, part.mask, size);
    const Floats = of.float32 ? Float32Array : Float64Array;
    const numbers = part.values ? Floats.from(part.values, (value) => value ?? NaN) : new Floats(size);
    const text = !part.values && element(part.textAt);
    if (text?.nextElementSibling) await unpack(text.textContent, part.mantissa_bits, flags, numbers);
    else if (!part.values) numbers.fill(NaN);  // the file is truncated
    part.lacksNumber = lacksNumber(numbers, flags);  // as far as it is known
    return {numbers, flags, hasMasked: part.mask !== null, lacksNumber: part.lacksNumber};
}

/// A promise of the numbers of a matrix of an array, row by row, and which are masked. Packed text
/// is decoded again after it is evicted; callers may keep the result.
function numbersOf(of, index) {
    const part = of.panels[index], size = of.rows.size * of.columns.size;
    const found = decoded.get(part) ?? {matrix: decode(of, part, size), bytes: size * (of.float32 ? 4 : 8)};
    decoded.delete(part);
    decoded.set(part, found);
    let bytes = 0;
    for (const each of decoded.values()) bytes += each.bytes;
    for (const [oldest, each] of decoded) {
        if (bytes <= mostDecoded || oldest === part) break;
        bytes -= each.bytes;
        decoded.delete(oldest);
    }
    return found.matrix;
}

/// The shortest decimal that reads back as the same float32 or float64; for rounded numbers, their
/// digits.
function shortest(value, of = map) {
    if (Object.is(value, -0)) return '-0';
    if (of.digits && value !== 0) return `≈ ${Number(value.toPrecision(of.digits))}`;
    if (!of.float32) return String(value);
    for (let digits = 1; digits < 9; ++digits) {
        const text = value.toPrecision(digits);
        if (Math.fround(Number(text)) === value) return String(Number(text));
    }
    return String(Number(value.toPrecision(9)));
}
