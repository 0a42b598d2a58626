
// ---- What is shown

/// The most informative row: the largest weight that is neither a token's own nor the first key's,
/// preferring rows with more visible keys.
function strongestRow() {
    const columns = map.columns.size, {numbers, flags} = shown;
    let strongest = map.rows.size - 1, most = 0;
    for (let row = 0; row < map.rows.size; ++row) {
        let largest = 0, open = 0;
        for (let column = 0; column < columns; ++column) {
            const cell = row * columns + column, size = Math.abs(numbers[cell]);
            if (flags[cell]) continue;
            ++open;
            if (column > 0 && column !== row && size > largest) largest = size;
        }
        if (Number.isFinite(largest) && largest * Math.log(open) > most)
            [strongest, most] = [row, largest * Math.log(open)];
    }
    return strongest;
}

/// The labels of the colour bar, from 0 at its left to 1 at its right.
function ticksOf() {
    return map.scales[chosen.scale].ticks.map(
        ([place, text]) => ({share: map.diverging ? (place + 1) / 2 : place, text}));
}

function showLegend() {
    element('scale-words').textContent = map.scales[chosen.scale].words;
    element('ticks').replaceChildren(...ticksOf().map(({share, text}) => {
        const tick = made('span', '', text);
        tick.style.left = `${100 * share}%`;
        tick.style.transform = `translateX(${-100 * share}%)`;
        return tick;
    }));
    drawColors(element('scale-colors'), Array.from(
        {length: 160}, (_, i) => colorAt(map, map.diverging ? 2 * i / 159 - 1 : (i || 0.1) / 159)));
    const isGrid = chosen.view === 'grid';
    element('masked-key').hidden = isGrid ? map.panels.every(({mask}) => mask === null) : !shown.hasMasked;
    element('dropped-key').hidden = !map.dropped;
    element('no-number-key').hidden = isGrid ? !map.panels.some((part) => part.lacksNumber)
                                             : !shown.lacksNumber;
}

function namesOfShown() {
    const places = placesOf(chosen.panel);
    return map.axes.map((axis, i) => chosen.isMean && i === map.axes.length - 1
        ? headCount(meanPanels().length) : axisLabel(axis, places[i]));
}

const nameOfShown = () => namesOfShown().join(', ');

/// The title of the array, with the current layer and head instead of their number.
function headingOfShown() {
    const names = namesOfShown();
    return map.axes.reduce((heading, {name, size}, i) => {
        const count = `${size} ${name === 'batch' ? 'batch entries' : `${name}s`}`;
        return heading.replace(count, () => names[i]);
    }, map.heading);
}

function showControls() {
    element('array').value = chosen.array;
    element('scale').value = chosen.scale;
    placesOf(chosen.panel).forEach((place, i) => {
        const isMean = chosen.isMean && i === map.axes.length - 1;
        element(`axis-${i}`).value = isMean ? 'mean' : place;
    });
    element('previous').disabled = chosen.panel === 0;
    element('next').disabled = chosen.panel === map.panels.length - 1;
    for (const kind of ['svg', 'png']) {
        const button = element(`save-${kind}`);
        button.disabled = chosen.view !== 'map';
        button.title = button.disabled ? 'Open one of the maps to save it' : '';
    }
}

/// The lists of layers, batch entries and heads.
function fillAxes() {
    element('panels').hidden = map.panels.length < 2;
    const lists = map.axes.map((axis, i) => {
        const list = made('select', '', ...Array.from(
            {length: axis.size}, (_, place) => new Option(axis.labels?.[place] ?? place, place)));
        list.id = `axis-${i}`;
        if (i === map.axes.length - 1 && axis.name === 'head') list.append(new Option('mean of heads', 'mean'));
        list.addEventListener('change', () => {
            const places = placesOf(chosen.panel), isMean = list.value === 'mean';
            if (!isMean) places[i] = Number(list.value);
            const isOfHeads = i === map.axes.length - 1;
            choose({panel: panelAt(places), isMean: isOfHeads ? isMean : chosen.isMean});
        });
        const label = made('label', '', `${axis.name[0].toUpperCase()}${axis.name.slice(1)} `, list);
        label.hidden = axis.size < 2;
        return label;
    });
    element('axes').replaceChildren(...lists);
}

function showArray() {
    map.widestRow ??= widestOf(map.rows);
    map.widestColumn ??= widestOf(map.columns);
    document.title = element('title').textContent = map.heading;
    element('settings').textContent = map.title;
    showNote();
    cursor = {row: Math.min(cursor.row, map.rows.size - 1),
              column: Math.min(cursor.column, map.columns.size - 1)};
    showHints();
    fillAxes();
}

function showNote() {
    const cut = isCut() ? 'This file is cut off: it ends before its last numbers, which are missing here.' : '';
    element('note').textContent = [cut, map.note].filter(Boolean).join(' ');
    element('note').hidden = element('note').textContent === '';
}

function showHints() {
    const areTokens = map.rows.axis === 'query' && map.columns.axis === 'key';
    element('hint').textContent = areTokens
        ? 'Click a row: what does it attend to? Click the label of a column: who attends to it?'
        : `Click a row, or the label of a column: its numbers as bars.`;
    const several = map.panels.length > 1;
    element('keys').textContent = `Keys: arrows move, Enter chooses the ${map.rows.axis}, Shift and Enter the `
        + `${map.columns.axis}, ${several ? 'Page Up and Page Down change the matrix, ' : ''}+ and − the size of the `
        + `cells${several ? ', Escape shows all matrices' : ''}.`;
}

let reading = null;  // a new request cancels the previous one

/// The drawing stays until the next numbers have been read.
async function showNumbers() {
    const mine = reading = {}, of = map;
    const part = chosen.isMean ? await meanOf(of, meanPanels()) : await numbersOf(of, chosen.panel);
    if (mine !== reading) return;
    shown = part;
    if (chosen.row === null) return choose({row: strongestRow()});
    view.setAttribute('aria-label', `${map.array} ${nameOfShown()}`.trim());
    showLegend();
    say();
    showBars();
    layout ? paint() : layOut();
}

onChange((before, next) => {
    const differs = (...names) => names.some((name) => before[name] !== chosen[name]);
    if (differs('array')) {
        shown = null;
        layout = null;
        zoom = 0;
        showArray();
    }
    // Shows the selection everywhere, and resets the pointed-at cell.
    if (['by', 'row', 'column'].some((name) => Object.hasOwn(next, name))) {
        cursor = {row: chosen.row ?? 0, column: chosen.column};
        pointed = null;
        say();
    }
    showControls();
    showView(before);
    const panelsPer = map.axes.at(-1)?.size ?? 1;
    if (differs('array', 'view') || Math.floor(before.panel / panelsPer) !== Math.floor(chosen.panel / panelsPer))
        fillStrip();
    if (differs('scale')) redrawThumbnails();
    if (differs('without')) showHeads();
    markThumbnails();
    const isRead = shown && before.row !== null && chosen.row !== null;
    if (chosen.view === 'map' && (!isRead || differs('array', 'panel', 'isMean', 'without', 'scale', 'view')))
        showNumbers();
    else if (chosen.view === 'map')
        showBars();
    draw();
    if (chosen.view !== 'map') return;
    const isListed = !isInFull() && differs('row', 'column', 'by');
    if (differs('array', 'panel', 'isMean', 'without', 'view') || isListed) showLines();
    else drawLines();
});

function chooseZoom(next) {
    if (next < 0 || (next > zoom && element('larger').disabled)) return;
    zoom = next;
    layOut();
    if (isPointing) scrollToCell(cursor.row, cursor.column);
}

/// A step to another matrix leaves the mean.
const stepPanel = (by) => choose({panel: chosen.panel + by, isMean: false});

// ---- Keys and pointer

function press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const {row, column} = cursor, far = event.shiftKey ? 10 : 1;
    const moves = {
        ArrowUp: [row - far, column], ArrowDown: [row + far, column],
        ArrowLeft: [row, column - far], ArrowRight: [row, column + far],
        Home: [row, 0], End: [row, map.columns.size - 1],
    };
    const acts = {
        Enter: () => choose({by: event.shiftKey ? 'column' : 'row', row, column}),
        PageUp: () => stepPanel(-1), PageDown: () => stepPanel(1), '+': () => chooseZoom(zoom + 1),
        '=': () => chooseZoom(zoom + 1), '-': () => chooseZoom(zoom - 1),
    };
    if (Object.hasOwn(moves, event.key)) {
        moveTo(...moves[event.key]);
        pointFromMap();
        scrollToCell(cursor.row, cursor.column);
    } else if (Object.hasOwn(acts, event.key)) {
        acts[event.key]();
    } else {
        return;
    }
    event.preventDefault();
}

/// The lines follow the map's cursor.
const pointFromMap = () => pointAt({by: chosen.by, index: cursor[chosen.by]});

function listen() {
    element('array').addEventListener('change', (event) => choose({array: Number(event.target.value)}));
    element('previous').addEventListener('click', () => stepPanel(-1));
    element('next').addEventListener('click', () => stepPanel(1));
    element('scale').addEventListener('change', (event) => choose({scale: event.target.value}));
    element('larger').addEventListener('click', () => chooseZoom(zoom + 1));
    element('smaller').addEventListener('click', () => chooseZoom(zoom - 1));
    element('largest-first').addEventListener('change', showBars);
    element('all-bars').addEventListener('change', showBars);
    view.addEventListener('keydown', press);
    view.addEventListener('focus', () => moveTo(cursor.row, cursor.column));
    view.addEventListener('blur', () => pointAt(null));
    view.addEventListener('scroll', draw);
    view.addEventListener('pointermove', (event) => {
        const cell = layout && cellAt(event);
        view.style.cursor = cell ? 'pointer' : '';
        if (!cell || cell.row === null || cell.column === null) return;
        moveTo(cell.row, cell.column);
        pointFromMap();
    });
    view.addEventListener('pointerleave', () => pointAt(null));
    view.addEventListener('click', (event) => {
        const cell = layout && cellAt(event);
        if (!cell) return;
        moveTo(cell.row ?? cursor.row, cell.column ?? cursor.column);
        choose(cell.row === null ? {by: 'column', column: cell.column}
                                 : {by: 'row', row: cell.row, column: cell.column ?? chosen.column});
    });
    const follow = () => {
        layOutAnew();
        drawLines();
    };
    new ResizeObserver(follow).observe(document.querySelector('main'));
    addEventListener('resize', follow);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
        cssColors.clear();
        background = null;
        redrawThumbnails();
        draw();
        drawLines();
    });
}

element('array').append(...contents.arrays.map((name, i) => new Option(name, i)));
element('array').parentElement.hidden = contents.arrays.length < 2;
element('scale').append(...contents.scales.map((name) => new Option(name)));
document.documentElement.style.setProperty('--no-number', contents.no_number);
document.documentElement.style.setProperty('--dropped', contents.dropped);
element('dropped-key').textContent = contents.dropped_words;
listen();
choose(choiceOf(location.hash));
wholePage.then(showNote);
