import type { PoolSquare, PoolRow } from '../../../view/rows/rows.ts';
import { useLayoutEffect, useRef, useState, useEffect, useId } from 'preact/hooks';
import type { PoolsPlanAnswer } from '../../messages.ts';
import { commandLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { YamlInput } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { ServiceLink, Sign, Text, type Tone } from '../parts/words.tsx';
import { objectOf, post } from '../state/session.ts';
import { withoutServerFields } from './yaml-field.ts';

const side = 11;
const step = 14;
const states = ['free', 'used', 'quarantined', 'reserved'] as const;

/** A square an address, drawn as one path a state: a pool of 1,024 costs four elements. The table below says the same. */
export function PoolSquares(props: {
  readonly squares: readonly PoolSquare[];
  readonly onPoint: (address: string | undefined) => void;
}) {
  const { squares, onPoint } = props;
  const box = useRef<HTMLDivElement>(null);
  const [perRow, setPerRow] = useState(32);
  useLayoutEffect(() => {
    const look = (): void => {
      const fitting = Math.floor((box.current?.clientWidth ?? 0) / step);
      // A power of two where there is room for one: rows then are subnets.
      const power = 2 ** Math.floor(Math.log2(Math.max(fitting, 8)));
      setPerRow(Math.min(power, 64));
    };
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const rows = Math.ceil(squares.length / perRow);
  const [width, height] = [Math.min(perRow, squares.length) * step, rows * step];
  const counts = states.map(
    (state) => `${squares.filter((square) => square.state === state).length} ${state}`,
  );
  return (
    <div ref={box} class="squares">
      <svg
        role="img"
        aria-label={counts.join(', ')}
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        onPointerMove={(event) => {
          const { left, top } = event.currentTarget.getBoundingClientRect();
          const column = Math.floor((event.clientX - left) / step);
          const row = Math.floor((event.clientY - top) / step);
          onPoint(squares[row * perRow + column]?.address);
        }}
        onPointerLeave={() => onPoint(undefined)}
      >
        {states.map((state) => (
          <path key={state} class={`square ${state}`} d={pathOf(squares, state, perRow)} />
        ))}
        <path class="hatch" d={hatchOf(squares, perRow)} />
      </svg>
    </div>
  );
}

function pathOf(squares: readonly PoolSquare[], state: PoolSquare['state'], perRow: number): string {
  return squares
    .map((square, index) => {
      if (square.state !== state) return '';
      const [x, y] = placeOf(index, perRow);
      return `M${x + 0.5} ${y + 0.5}h${side - 1}v${side - 1}h${1 - side}z`;
    })
    .join('');
}

/** A stroke through each quarantined square: a sign beside the colour. */
function hatchOf(squares: readonly PoolSquare[], perRow: number): string {
  return squares
    .map(({ state }, index) => {
      if (state !== 'quarantined') return '';
      const [x, y] = placeOf(index, perRow);
      return `M${x + 1} ${y + side - 1}L${x + side - 1} ${y + 1}`;
    })
    .join('');
}

function placeOf(index: number, perRow: number): readonly [number, number] {
  return [(index % perRow) * step, Math.floor(index / perRow) * step];
}

type Effect = PoolsPlanAnswer['effects'][number];

const effects: Readonly<Record<Effect['effect'], { readonly sign: string; readonly tone: Tone }>> = {
  moves: { sign: '→', tone: 'warn' },
  loses: { sign: '✗', tone: 'bad' },
  gains: { sign: '+', tone: 'good' },
  adopts: { sign: '=', tone: 'good' },
  stays: { sign: '!', tone: 'warn' },
};

/** An edit of a pool, tried without writing anything. */
export function PoolEdit({ pool }: { readonly pool: PoolRow }) {
  const { rows } = usePage();
  const id = useId();
  const [yaml, setYaml] = useState('');
  const [answer, setAnswer] = useState<PoolsPlanAnswer | string>();
  useEffect(() => {
    objectOf('AddressPool', '', pool.name).then(
      (object) => setYaml(withoutServerFields(object.yaml)),
      (cause: unknown) => setAnswer(String(cause)),
    );
  }, [pool.name]);
  const plan = (body: { readonly yaml: string; readonly delete?: readonly string[] }): void => {
    post('/data/pools/plan', body).then(setAnswer, (cause: unknown) =>
      setAnswer(cause instanceof Error ? cause.message : String(cause)),
    );
  };
  return (
    <div class="pool-edit">
      <label for={id}>
        The pool as it shall be <span class="muted">(nothing is written)</span>
      </label>
      <YamlInput id={id} yaml={yaml} onInput={setYaml} />
      <p class="buttons">
        <button type="button" class="primary" onClick={() => plan({ yaml })}>
          Plan
        </button>
        <button type="button" onClick={() => plan({ yaml: '', delete: [pool.name] })}>
          Plan its deletion
        </button>
      </p>
      {typeof answer === 'string' && (
        <p class="notice bad" role="alert">
          <Text>{answer}</Text>
        </p>
      )}
      {typeof answer === 'object' && (
        <div role="status">
          {answer.problems.map((problem) => (
            <p key={problem} class="notice bad">
              <Text>{problem}</Text>
            </p>
          ))}
          {answer.effects.length === 0 ? (
            <p>
              <Sign tone="good" sign="✓" /> No Service is affected.
            </p>
          ) : (
            <>
              <Moves effects={answer.effects} />
              <Table
                name="effects of the edit"
                rows={answer.effects.map((effect) => ({
                  ...effect,
                  key: `${effect.service} ${effect.family}`,
                }))}
                columns={[
                  { title: 'Service', class: 'wide', cell: ({ service }) => <ServiceLink of={service} /> },
                  { title: 'Family', cell: ({ family }) => family },
                  {
                    title: 'Effect',
                    cell: ({ effect }) => (
                      <>
                        <Sign {...effects[effect]} /> {effect}
                        {effect === 'stays' && ', in no pool'}
                      </>
                    ),
                  },
                  { title: 'From', class: 'code', cell: ({ from = '–' }) => <Text>{from}</Text> },
                  { title: 'To', class: 'code', cell: ({ to = '–' }) => <Text>{to}</Text> },
                ]}
              />
            </>
          )}
          <Command
            line={commandLine(
              ...['servicenet', 'pools', 'plan', ...(rows.cluster?.clusterFlags ?? []), '-f', 'pool.yaml'],
            )}
          />
        </div>
      )}
    </div>
  );
}

const rowHeight = 26;
const addressWidth = 190;
const fullWidth = 520;
/** More effects than this are told by the table alone. */
const mostDrawn = 40;

/** Addresses before and after, with a line for each effect. */
function Moves({ effects: all }: { readonly effects: readonly Effect[] }) {
  const drawn = all.slice(0, mostDrawn);
  const height = (drawn.length + 1) * rowHeight;
  const right = fullWidth - addressWidth;
  return (
    <svg
      class="moves"
      viewBox={`0 0 ${fullWidth} ${height}`}
      width={fullWidth}
      height={height}
      aria-hidden="true"
    >
      <text x="4" y={rowHeight * 0.6}>
        before
      </text>
      <text x={right + 4} y={rowHeight * 0.6}>
        after
      </text>
      {drawn.map(({ service, family, effect, from, to }, index) => {
        const y = (index + 1.5) * rowHeight;
        return (
          <g key={`${service} ${family}`}>
            <Square address={from} x={0} y={y} />
            <path
              class={`move ${effects[effect].tone}`}
              d={`M${addressWidth} ${y}H${right}m-6 -4l6 4l-6 4`}
            />
            <Square address={effect === 'stays' ? from : to} x={right} y={y} />
          </g>
        );
      })}
    </svg>
  );
}

function Square({
  address,
  x,
  y,
}: {
  readonly address: string | undefined;
  readonly x: number;
  readonly y: number;
}) {
  return (
    <>
      <rect
        class={address === undefined ? 'none' : ''}
        x={x + 0.5}
        y={y - 10.5}
        width={addressWidth - 1}
        height="21"
        rx="4"
      />
      <text x={x + 8} y={y + 4}>
        {address === undefined ? 'no address' : address.length > 24 ? `${address.slice(0, 23)}…` : address}
      </text>
    </>
  );
}
