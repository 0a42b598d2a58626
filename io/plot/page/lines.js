
// ---- Lines between tokens: queries on the left, keys on the right

const mostInFull = 64;                     // tokens; of more there are those about the chosen one,
const tokensAround = 40, heaviest = 40;    // and the heaviest across
const linesCanvas = element('lines-canvas');
const lists = {row: element('queries'), column: element('key-tokens')};
const otherSide = {row: 'column', column: 'row'};

let heads = [];         // whose lines there are: {head, numbers, flags}
let lineRow = 18;       // pixels a token
let placeIn = {row: new Map(), column: new Map()};  // token: its place in its list
let pointed = null;     // the token below the pointer, or with the keyboard: {by, index}
let background = null;  // the lines of all tokens, faint

const canHaveLines = () => map.rows.axis === 'query' && map.columns.axis === 'key' && !map.diverging;
const isInFull = () => Math.max(map.rows.size, map.columns.size) <= mostInFull;
const sideOf = (by) => by === 'row' ? map.rows : map.columns;
const current = () => pointed ?? {by: chosen.by, index: chosen[chosen.by]};

function weightOf(head, by, index, other) {
    const cell = by === 'row' ? index * map.columns.size + other : other * map.columns.size + index;
    const value = head.flags[cell] ? 0 : head.numbers[cell];
    return Number.isFinite(value) ? value : 0;
}

/// What a token's lines go to: of each token across its mean weight over the heads, and the largest
/// weight of all.
function fanOf({by, index}) {
    const mean = new Float64Array(sideOf(otherSide[by]).size);
    let full = 0;
    for (const head of heads)
        for (let other = 0; other < mean.length; ++other) {
            const weight = weightOf(head, by, index, other);
            mean[other] += weight / heads.length;
            full = Math.max(full, weight);
        }
    return {mean, full};
}

const byWeight = (mean) => (a, b) => mean[b] - mean[a] || a - b;

function tokenButton(by, index) {
    const side = sideOf(by);
    const button = made('button', '', tokenOf(side, index), made('span', 'weight'));
    button.type = 'button';
    button.tabIndex = -1;
    button.dataset.index = index;
    button.ariaLabel = button.title = spokenName(side, index);
    return made('li', '', button);
}

/// Where there are too many: those about the chosen token, and the heaviest across, in their order.
function listed(by) {
    const size = sideOf(by).size, all = Array.from({length: size}, (_, i) => i);
    if (isInFull() || size <= tokensAround) return all;
    const index = chosen[chosen.by];
    if (by === chosen.by) {
        const first = Math.min(Math.max(index - tokensAround / 2, 0), size - tokensAround);
        return all.slice(first, first + tokensAround);
    }
    const {mean} = fanOf({by: chosen.by, index});
    return all.sort(byWeight(mean)).slice(0, heaviest).filter((i) => mean[i] > 0).sort((a, b) => a - b);
}

function moreButton(text, by, index) {
    const button = made('button', 'more', text);
    button.type = 'button';
    button.addEventListener('click', () => choose({by, [by]: index}));
    return made('li', '', button);
}

function fillList(by) {
    const indices = listed(by), items = indices.map((index) => tokenButton(by, index));
    const size = sideOf(by).size, first = indices[0], last = indices.at(-1);
    placeIn[by] = new Map(indices.map((index, i) => [index, i]));
    if (by === chosen.by) {
        if (last < size - 1) items.push(moreButton(`↓ ${size - 1 - last} more`, by, last + tokensAround / 2));
        if (first > 0) {
            items.unshift(moreButton(`↑ ${first} more`, by, first - tokensAround / 2));
            for (const index of indices) placeIn[by].set(index, placeIn[by].get(index) + 1);
        }
    } else if (indices.length < size) {
        const {mean} = fanOf({by: chosen.by, index: chosen[chosen.by]});
        const most = mean.reduce((most, weight, i) => placeIn[by].has(i) ? most : Math.max(most, weight), 0);
        items.push(made('li', 'rest', `${size - indices.length} others, ${briefText(most)} at most`));
    }
    lists[by].replaceChildren(...items);
}

/// The lists anew, and the focus where it was.
function fillLists() {
    const focused = document.activeElement?.closest?.('.tokens') ? document.activeElement.dataset.index : null;
    const by = lists.row.contains(document.activeElement) ? 'row' : 'column';
    const tallest = Math.max(map.rows.size, map.columns.size);
    lineRow = isInFull() ? Math.min(22, Math.max(15, Math.floor(0.74 * innerHeight / tallest))) : 18;
    element('lines-view').style.setProperty('--line-row', `${lineRow}px`);
    for (const side of ['row', 'column']) fillList(side);
    if (focused !== null) buttonOf(by, focused)?.focus({preventScroll: true});
}

const buttonOf = (by, index) => lists[by].querySelector(`[data-index="${index}"]`);

// ---- The lines themselves

function addCurve(context, width, by, index, other, shift) {
    const [row, column] = by === 'row' ? [index, other] : [other, index];
    const y = (side, token) => (placeIn[side].get(token) + 0.5) * lineRow + shift;
    const from = y('row', row), to = y('column', column);
    context.moveTo(0, from);
    context.bezierCurveTo(width / 2, from, width / 2, to, width, to);
}

/// Heads lie a little apart, so that each is seen.
const shiftOf = (i) => heads.length < 2 ? 0
    : (i / (heads.length - 1) - 0.5) * Math.min(lineRow - 6, 2 * heads.length);

function colorOfHead({head}) {
    return heads.length === 1 || head === null ? cssColor('--accent') : headColor(head);
}

function drawFan(context, width, focus, {mean, full}) {
    if (full === 0) return;
    for (const [i, head] of heads.entries()) {
        context.strokeStyle = colorOfHead(head);
        for (let other = 0; other < mean.length; ++other) {
            const share = weightOf(head, focus.by, focus.index, other) / full;
            if (share < 0.01 || !placeIn[otherSide[focus.by]].has(other)) continue;
            context.globalAlpha = 0.15 + 0.85 * share;
            context.lineWidth = 0.5 + (heads.length > 4 ? 2 : 3.5) * share;
            context.beginPath();
            addCurve(context, width, focus.by, focus.index, other, shiftOf(i));
            context.stroke();
        }
    }
    context.globalAlpha = 1;
}

/// What every query attends to most, as a ground for the one that is chosen.
function drawBackground(width, height) {
    background = document.createElement('canvas');
    background.width = linesCanvas.width;
    background.height = linesCanvas.height;
    const context = background.getContext('2d');
    context.scale(devicePixelRatio, devicePixelRatio);
    context.strokeStyle = cssColor('--muted');
    for (const [i, head] of heads.entries())
        for (let row = 0; row < map.rows.size; ++row)
            for (let column = 0; column < map.columns.size; ++column) {
                const weight = weightOf(head, 'row', row, column);
                if (weight < 0.1) continue;
                context.globalAlpha = Math.min(1, weight) * Math.max(0.1, 0.35 / heads.length);
                context.lineWidth = 0.5 + weight;
                context.beginPath();
                addCurve(context, width, 'row', row, column, shiftOf(i));
                context.stroke();
            }
}

let areLinesDrawing = false;
function drawLines() {
    if (areLinesDrawing) return;
    areLinesDrawing = true;
    requestAnimationFrame(() => {
        areLinesDrawing = false;
        if (!element('lines').hidden && chosen.row !== null) drawLinesNow();
    });
}

function drawLinesNow() {
    const width = linesCanvas.clientWidth, focus = current(), fan = fanOf(focus);
    const height = lineRow * Math.max(lists.row.children.length, lists.column.children.length);
    if (width === 0) return;
    if (linesCanvas.width !== Math.round(width * devicePixelRatio) ||
        linesCanvas.height !== Math.round(height * devicePixelRatio)) {
        linesCanvas.style.height = `${height}px`;
        linesCanvas.width = Math.round(width * devicePixelRatio);
        linesCanvas.height = Math.round(height * devicePixelRatio);
        background = null;
    }
    const context = linesCanvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, linesCanvas.width, linesCanvas.height);
    if (isInFull()) {
        if (!background) drawBackground(width, height);
        context.drawImage(background, 0, 0);
    }
    context.scale(devicePixelRatio, devicePixelRatio);
    drawFan(context, width, focus, fan);
    markTokens(focus, fan);
}

/// Of each token across how much goes to it, as its ground and in digits.
function markTokens(focus, {mean}) {
    const most = mean.reduce((most, weight) => Math.max(most, weight), 0);
    for (const by of ['row', 'column'])
        for (const button of lists[by].querySelectorAll('button[data-index]')) {
            const index = Number(button.dataset.index), isSource = by === focus.by;
            const share = isSource || most === 0 ? 0 : mean[index] / most;
            button.classList.toggle('source', isSource && index === focus.index);
            button.setAttribute('aria-pressed', String(by === chosen.by && index === chosen[by]));
            button.tabIndex = index === chosen[by] ? 0 : -1;
            button.classList.toggle('dim', !isSource && share < 0.01);
            button.style.setProperty('--share', `${Math.round(45 * share)}%`);
            button.lastChild.textContent = share >= 0.05 ? mean[index].toFixed(2) : '';
        }
    const largest = Array.from(mean.keys()).sort(byWeight(mean)).slice(0, 3).filter((i) => mean[i] > 0);
    const words = largest.flatMap((index, i) =>
        [i ? ', ' : '', tokenOf(sideOf(otherSide[focus.by]), index), ` ${briefText(mean[index])}`]);
    element('lines-title').replaceChildren(
        ...(focus.by === 'row' ? ['What “', tokenOf(map.rows, focus.index), '” attends to']
                               : ['Who attends to “', tokenOf(map.columns, focus.index), '”']));
    element('lines-say').replaceChildren(...(largest.length ? ['Most: ', ...words] : ['No lines: choose a head.']),
                                         heads.length > 1 && largest.length ? ', mean of the heads' : '');
}

// ---- What they show

let linesRead = null;  // a new one ends the reading of the last

async function showLines() {
    element('lines').hidden = !canHaveLines();
    if (!canHaveLines()) return;
    const mine = linesRead = {}, of = map;
    const isAlone = element('this-head').checked && !chosen.isMean;
    element('this-head').parentElement.hidden = !hasHeads() || chosen.isMean || besides().length < 2;
    const read = [];
    for (const panel of isAlone ? [chosen.panel] : headPanels()) {
        const {numbers, flags} = await numbersOf(of, panel);
        read.push({head: hasHeads() ? placesOf(panel).at(-1) : null, numbers, flags});
        if (mine !== linesRead) return;
    }
    heads = read;
    pointed = background = null;
    fillLists();
    drawLines();
}

function pointAt(next) {
    if (!isInFull() && next) return;
    if (pointed?.by === next?.by && pointed?.index === next?.index) return;
    pointed = next;
    drawLines();
}

function pressInList(event, by) {
    const index = Number(event.target.dataset.index);
    if (Number.isNaN(index) || event.ctrlKey || event.altKey || event.metaKey) return;
    const other = otherSide[by], isFollowed = !isInFull() && by === chosen.by;
    const indices = [...placeIn[by].keys()], at = indices.indexOf(index);
    const go = (side, next) => {
        if (isFollowed && side === by) choose({[by]: next});
        buttonOf(side, next)?.focus();
    };
    const nearest = () => [...placeIn[other].keys()].reduce(
        (best, token) => Math.abs(token - index) < Math.abs(best - index) ? token : best);
    const acts = {
        ArrowUp: () => go(by, isFollowed ? Math.max(index - 1, 0) : indices[Math.max(at - 1, 0)]),
        ArrowDown: () => go(by, isFollowed ? Math.min(index + 1, sideOf(by).size - 1)
                                           : indices[Math.min(at + 1, indices.length - 1)]),
        Home: () => go(by, isFollowed ? 0 : indices[0]),
        End: () => go(by, isFollowed ? sideOf(by).size - 1 : indices.at(-1)),
        ArrowLeft: () => by === 'column' && go('row', nearest()),
        ArrowRight: () => by === 'row' && go('column', nearest()),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    acts[event.key]();
    event.preventDefault();
}

for (const [by, list] of Object.entries(lists)) {
    const tokenAt = (event) => event.target.closest('[data-index]');
    const index = (event) => Number(tokenAt(event).dataset.index);
    for (const kind of ['pointerover', 'focusin'])
        list.addEventListener(kind, (event) => pointAt(tokenAt(event) && {by, index: index(event)}));
    for (const kind of ['pointerleave', 'focusout']) list.addEventListener(kind, () => pointAt(null));
    list.addEventListener('click', (event) => tokenAt(event) && choose({by, [by]: index(event)}));
    list.addEventListener('keydown', (event) => pressInList(event, by));
}
element('swap').addEventListener('click', () => {
    const by = otherSide[chosen.by];
    choose({by, [by]: chosen[chosen.by]});
});
element('this-head').addEventListener('change', showLines);
