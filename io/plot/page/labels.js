
// ---- Labels and numbers as text

/// Invisible characters and line breaks, as visible symbols.
function visible(label) {
    const text = label.replace(/[\0-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
    return text === '' ? '(empty)' : text;
}

function made(name, className, ...content) {
    const node = document.createElement(name);
    if (className) node.className = className;
    node.append(...content);
    return node;
}

const placeOf = (side, index) => side.first + index * side.step;

/// A token, or the index if there is none. A separate element, so that its text direction does not
/// affect the surroundings.
const tokenOf = (side, index) =>
    made('bdi', 'token', side.tokens ? visible(side.labels[index]) : String(placeOf(side, index)));

/// `query 3 “next”`.
function nameOf(side, index) {
    const place = `${side.axis} ${placeOf(side, index)}`;
    return side.tokens ? [`${place} “`, tokenOf(side, index), '”'] : [place];
}

/// The same for screen readers.
const spokenName = (side, index) => nameOf(side, index).map((part) => part.textContent ?? part).join('');

/// The number of a cell on the page. Numbers computed here have at most six digits.
function numberText(index) {
    if (shown.flags[index]) return 'masked';
    const value = shown.numbers[index];
    if (!Number.isFinite(value)) return 'no number';
    if (map.dropped && value === 0) return contents.dropped_words;
    return shown.meanOf ? String(Number(value.toPrecision(6))) : shortest(value);
}

/// A weight in a few digits.
function briefText(value) {
    if (value === 0) return '0';
    return Math.abs(value) >= 0.001 ? String(Number(value.toPrecision(2))) : value.toExponential(0);
}

const headCount = (count) => `mean of ${count} head${count === 1 ? '' : 's'}`;
