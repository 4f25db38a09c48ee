import type { JSX } from 'preact';
import { PlaceLink, podSigns, Reason, Sign, Text, type Tone } from '../parts/words.tsx';
import { usePage } from '../parts/page-context.ts';
import { withQuery } from '../state/place.ts';
import { type MapMember, type MapRow, mostMembers, stateOf } from './map-rows.ts';

/** One Service on the Map: itself, its slices, its Pods, and the lines between them. */

/** Above and below the lines of a row, in pixels. */
const padding = 10;

/** Whether Pods are counts. */
function isFolded({ members }: MapRow, isOpen: boolean): boolean {
  return members.length > mostMembers && !isOpen;
}

/** Lines of text in each part of a row. */
function linesOf(row: MapRow, isOpen: boolean) {
  const service = row.service.trouble === undefined ? 2 : 3;
  const shown = isFolded(row, isOpen) ? 1 : row.members.length + (row.members.length > mostMembers ? 1 : 0);
  return { service, members: Math.max(1, shown), slices: row.slices.length };
}

/** @param isNarrow the parts stand one below the other. */
export function mapRowHeight(row: MapRow, isOpen: boolean, lineHeight: number, isNarrow: boolean): number {
  const { service, members, slices } = linesOf(row, isOpen);
  const lines = isNarrow ? service + members : Math.max(service, members, slices);
  return lines * lineHeight + 2 * padding + 1;
}

interface Props {
  readonly row: MapRow;
  readonly index: number;
  readonly isOpen: boolean;
  readonly lineHeight: number;
  readonly nodeNumbers: ReadonlyMap<string, number>;
  readonly onFold: () => void;
  readonly onHover: (isHovered: boolean) => void;
}

export function MapRowView({ row, index, isOpen, lineHeight, nodeNumbers, onFold, onHover }: Props) {
  const { place, rows, width } = usePage();
  const { service, slices, members } = row;
  const selection = `service/${row.key}`;
  const isSelected = place.query['sel'] === selection;
  const height = mapRowHeight(row, isOpen, lineHeight, width === 'narrow');
  const folded = isFolded(row, isOpen);
  const isChanged = rows.changed.has(row.key) || slices.some(({ key }) => rows.changed.has(key));
  const classes = ['map-row', isSelected ? 'selected' : '', isChanged ? 'changed' : ''];
  const sliceY = slices.map((_, each) => padding + ((each + 0.5) * (height - 2 * padding)) / slices.length);
  const memberY = members.map((_, each) => padding + (each + 0.5) * lineHeight);
  const foldedY = padding + lineHeight / 2;
  const toSlices = sliceY.map((y): Line => ({ from: padding + lineHeight / 2, to: y, tone: 'good' }));
  const toMembers = folded
    ? sliceY.map((y): Line => ({
        from: y,
        to: foldedY,
        tone: members.some(({ isReady }) => isReady) ? 'good' : 'bad',
      }))
    : members.flatMap((member, each) =>
        member.slices.map((slice): Line => ({
          from: sliceY[slice] ?? 0,
          to: memberY[each] ?? 0,
          tone: podSigns[stateOf(member)].tone,
        })),
      );
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      class={classes.join(' ')}
      style={{ minHeight: `${height}px` }}
      onPointerEnter={() => onHover(true)}
      onPointerLeave={() => onHover(false)}
    >
      <div role="cell" class="service-cell">
        <ServiceLines row={row} to={withQuery(place, { sel: isSelected ? undefined : selection })} />
      </div>
      <div role="cell" class="slices-cell">
        <Lines lines={toSlices} height={height} />
        <ul class="slices">
          {slices.map((slice, each) => (
            <li key={slice.key} style={{ top: `${(sliceY[each] ?? 0) - 11}px` }} title={slice.key}>
              <span class="hidden">EndpointSlice {slice.name}: </span>
              {slice.endpoints.length}
              <span class="family">{slice.addressType === 'IPv4' ? '' : ' v6'}</span>
              <span class="hidden"> endpoints, {slice.addressType}</span>
            </li>
          ))}
        </ul>
        <Lines lines={toMembers} height={height} />
      </div>
      <div role="cell" class="members-cell">
        {members.length === 0 && (
          <p class="member none">
            {service.endpoints === undefined ? 'no endpoints by design' : 'no endpoint'}
          </p>
        )}
        {members.length > mostMembers && (
          <button type="button" class="member fold" aria-expanded={!folded} onClick={onFold}>
            {stateCounts(members)}
            <span aria-hidden="true">{folded ? ' ▸' : ' ▾'}</span>
          </button>
        )}
        {!folded &&
          members.map((member) => <Member key={member.key} member={member} nodeNumbers={nodeNumbers} />)}
      </div>
    </div>
  );
}

function ServiceLines({
  row,
  to,
}: {
  readonly row: MapRow;
  readonly to: Parameters<typeof PlaceLink>[0]['to'];
}) {
  const { namespace, name, type, clusterIP, external, ports, endpoints, trouble } = row.service;
  const isShort = endpoints !== undefined && endpoints.ready < endpoints.total;
  const addresses = [clusterIP, external].filter((each) => each !== '<none>' && each !== 'None');
  return (
    <>
      <p class="first">
        <PlaceLink to={to} class="title">
          <span class="ns">
            <Text>{namespace}</Text>/
          </span>
          <Text>{name}</Text>
        </PlaceLink>
        {endpoints !== undefined && (
          <span class={`ready ${endpoints.ready === 0 ? 'bad' : isShort ? 'warn' : ''}`}>
            {endpoints.ready}/{endpoints.total}
            <span class="hidden"> endpoints ready</span>
          </span>
        )}
      </p>
      <p class="second">
        <span class="type">{type}</span>{' '}
        {[...addresses, ...(ports === '<none>' ? [] : [ports])].map((text) => (
          <bdi key={text} class="code">
            {text}
          </bdi>
        ))}
      </p>
      {trouble !== undefined && (
        <p class="third" title={trouble.message}>
          <Reason word={trouble.reason} /> <Text>{trouble.message}</Text>
        </p>
      )}
    </>
  );
}

function Member({
  member,
  nodeNumbers,
}: {
  readonly member: MapMember;
  readonly nodeNumbers: ReadonlyMap<string, number>;
}) {
  const { place, rows } = usePage();
  const { key, pod, address, node } = member;
  const state = stateOf(member);
  const { sign, tone } = podSigns[state];
  const number = node === undefined ? undefined : nodeNumbers.get(node);
  const selection = `pod/${key}`;
  const isSelected = place.query['sel'] === selection;
  const name = pod?.name ?? key.split('/')[1];
  return (
    <p class={`member ${isSelected ? 'selected' : ''} ${rows.changed.has(key) ? 'changed' : ''}`}>
      <Sign tone={tone} sign={sign} />
      {pod === undefined ? (
        <span class="pod-name muted">{name === undefined ? 'no Pod' : <PodName name={name} />}</span>
      ) : (
        <PlaceLink
          to={withQuery(place, { sel: isSelected ? undefined : selection })}
          class="pod-name"
          title={pod.name}
        >
          <PodName name={pod.name} />
        </PlaceLink>
      )}
      <span class={`state ${tone}`}>{state === 'ready' ? <span class="hidden">ready</span> : state}</span>
      <bdi class="code address" title={address}>
        {address}
      </bdi>
      {number !== undefined && (
        <span class="node-mark" title={`on ${node ?? ''}`}>
          <span class="hidden">on node </span>
          {number}
        </span>
      )}
    </p>
  );
}

/** Its end stays where there is no room for the whole of it: Pods of one owner differ there. */
function PodName({ name }: { readonly name: string }) {
  const [end = ''] = /-[a-z\d]{1,5}$/.exec(name) ?? [];
  return (
    <bdi class="both-ends">
      <span>{name.slice(0, name.length - end.length)}</span>
      {end}
    </bdi>
  );
}

/** `9 ready · 3 not ready`. */
export function stateCounts(members: readonly MapMember[]): JSX.Element {
  const groups = Map.groupBy(members, stateOf);
  return (
    <>
      {[...groups].map(([state, { length }], index) => (
        <span key={state}>
          {index > 0 && ' · '}
          <Sign {...podSigns[state]} /> {length} {state}
        </span>
      ))}
    </>
  );
}

interface Line {
  /** Pixels from the top of the row, at the left and at the right. */
  readonly from: number;
  readonly to: number;
  readonly tone: Tone;
}

function Lines({ lines, height }: { readonly lines: readonly Line[]; readonly height: number }) {
  return (
    <svg class="lines" viewBox={`0 0 40 ${height}`} width="40" height={height} aria-hidden="true">
      {lines.map(({ from, to, tone }) => (
        <path
          key={`${from} ${to}`}
          class={tone === 'good' ? 'line' : `line ${tone}`}
          d={`M0 ${from}C22 ${from} 18 ${to} 40 ${to}`}
        />
      ))}
    </svg>
  );
}
