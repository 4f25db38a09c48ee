import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { NodeRow } from '../../../view/rows/rows.ts';
import { commandLine, kubectlLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { useHeldOrder } from '../parts/held-order.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, Pending, PlaceCheck, PlaceSelect, Toolbar } from '../parts/view-parts.tsx';
import { lineHeightPx, Table, useRowsInSight } from '../parts/virtual-list.tsx';
import { counted, digits, PlaceLink, podSigns, Reason, ServiceLink, Sign, Text } from '../parts/words.tsx';
import { mostPods } from '../../messages.ts';
import { withQuery } from '../state/place.ts';
import { MapDetails, NodeState } from './map-details.tsx';
import { mapPictureOf } from './map-picture.ts';
import { isFound, type MapRow, mapRows, mostMembers, numberedNodes, stateOf } from './map-rows.ts';
import { mapRowHeight, MapRowView, stateCounts } from './map-row.tsx';

/** Above so many Pods, a namespace is asked for before their rows are drawn. */
const mostDrawn = 2000;

/** The Map: Service → EndpointSlice → Pod → node. */
export function MapView() {
  const { rows, place } = usePage();
  const { ns, q, sel, all } = place.query;
  const pods = rows.all('namespace').reduce((sum, namespace) => sum + namespace.pods, 0);
  const isOfAll = ns === undefined && all !== '1';
  // Above the larger number, no rows were sent that a search could find.
  const most = q === undefined && sel === undefined ? mostDrawn : mostPods;
  return isOfAll && pods > most ? <NamespaceChoice pods={pods} /> : <MapOfServices />;
}

function NamespaceChoice({ pods }: { readonly pods: number }) {
  const { rows, place } = usePage();
  const namespaces = rows.all('namespace').toSorted((a, b) => b.pods - a.pods || (a.name < b.name ? -1 : 1));
  return (
    <div class="view">
      <Toolbar summary={`${counted(pods, 'Pod')} in ${counted(namespaces.length, 'namespace')}: choose one`}>
        <PlaceLink to={withQuery(place, { all: '1' })} class="button">
          Show all of them
        </PlaceLink>
      </Toolbar>
      <Table
        name="namespaces"
        rows={namespaces}
        columns={[
          {
            title: 'Namespace',
            class: 'wide',
            cell: ({ name }) => (
              <PlaceLink to={withQuery(place, { ns: name })}>
                <Text>{name}</Text>
              </PlaceLink>
            ),
          },
          { title: 'Services', cell: ({ services }) => digits(services) },
          { title: 'Pods', cell: ({ pods: of }) => digits(of) },
        ]}
      />
    </div>
  );
}

function MapOfServices() {
  const { rows, place, isCurrent } = usePage();
  const { q = '', show, type = '', sel, table, ns } = place.query;
  const before = useRef<readonly MapRow[]>([]);
  const all = useMemo(() => (before.current = mapRows(rows, before.current)), [rows, rows.version]);
  const found = all.filter(
    (row) =>
      isFound(row, q) &&
      (show !== 'problems' || row.service.trouble !== undefined) &&
      (type === '' || row.service.type === type),
  );
  const held = useHeldOrder(found);
  const types = [...new Set(all.map(({ service }) => service.type))].toSorted();
  const nodes = numberedNodes(rows);
  const isTable = table === '1';
  return (
    <div class={sel === undefined ? 'view map' : 'view map with-details'}>
      <Toolbar
        summary={
          found.length === all.length
            ? counted(all.length, 'Service')
            : `${digits(found.length)} of ${counted(all.length, 'Service')}`
        }
        picture={isTable ? undefined : () => mapPictureOf(held.rows, nodes)}
        name={`map${ns === undefined ? '' : `-${ns}`}`}
        command={commandLine(
          'servicenet',
          'top',
          ...(rows.cluster?.clusterFlags ?? []),
          ...(ns === undefined ? [] : ['-n', ns]),
        )}
        hasTable
      >
        <PlaceSelect
          {...{ name: 'type', label: 'type of Service', isLabelHidden: true, value: type }}
          choices={[['', 'all types'], ...types.map((each) => [each, each] as const)]}
        />
        <PlaceCheck name="show" on="problems">
          only problems
        </PlaceCheck>
        <Pending count={held.pending} />
      </Toolbar>
      {found.length === 0 && isCurrent ? (
        <NothingFound hasServices={all.length > 0} namespace={ns} />
      ) : (
        <div class="split">
          <div class="main" {...held.hold}>
            {isTable ? <MapTable rows={held.rows} /> : <MapPicture rows={held.rows} nodes={nodes} />}
          </div>
          {sel !== undefined && <MapDetails selection={sel} />}
        </div>
      )}
    </div>
  );
}

function NothingFound({
  hasServices,
  namespace,
}: {
  readonly hasServices: boolean;
  readonly namespace: string | undefined;
}) {
  const { place, rows } = usePage();
  if (hasServices) {
    const to = withQuery(place, { q: undefined, show: undefined, type: undefined });
    return (
      <Empty sentence="No Service is like this.">
        <PlaceLink to={to}>Show all of them</PlaceLink>
      </Empty>
    );
  }
  const where = namespace === undefined ? [] : ['-n', namespace];
  return (
    <Empty
      sentence={namespace === undefined ? 'There are no Services.' : `There are no Services in ${namespace}.`}
    >
      <Command
        line={kubectlLine(
          rows.cluster,
          ...where,
          'create',
          'deployment',
          'web',
          '--image=nginx',
          '--port=80',
        )}
      />
      <Command line={kubectlLine(rows.cluster, ...where, 'expose', 'deployment', 'web', '--port=80')} />
    </Empty>
  );
}

type NumberedNodes = ReturnType<typeof numberedNodes>;

function MapPicture({ rows, nodes }: { readonly rows: readonly MapRow[]; readonly nodes: NumberedNodes }) {
  const { place, width } = usePage();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [hovered, setHovered] = useState<string>();
  const lineHeight = lineHeightPx();
  const heights = rows.map((row) => mapRowHeight(row, open.has(row.key), lineHeight, width === 'narrow'));
  const { list, from, to, above, below } = useRowsInSight(heights);
  const numbers = new Map(nodes.map(({ node, number }) => [node.name, number]));
  const [, ...selected] = (place.query['sel'] ?? '').split('/');
  const pointed = hovered ?? selected.join('/');
  const used = new Set(
    rows
      .filter(({ key, members }) => key === pointed || members.some((member) => member.key === pointed))
      .flatMap(({ key, members }) => members.filter((member) => key === pointed || member.key === pointed))
      .flatMap(({ node }) => node ?? []),
  );
  const fold = (key: string): void => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return (
    <div class="map-picture">
      <div
        role="table"
        aria-label="Services, their EndpointSlices and Pods"
        aria-rowcount={rows.length + 1}
        class="map-table"
      >
        <div role="row" aria-rowindex={1} class="map-head">
          <span role="columnheader">Services</span>
          <span role="columnheader" class="slices-head">
            Slices
          </span>
          <span role="columnheader">Pods</span>
        </div>
        <div role="rowgroup" ref={list} class="map-rows">
          <div style={{ height: `${above}px` }} />
          {rows.slice(from, to).map((row, index) => (
            <MapRowView
              key={row.key}
              {...{ row, lineHeight, index: from + index, isOpen: open.has(row.key), nodeNumbers: numbers }}
              onFold={() => fold(row.key)}
              onHover={(isHovered) => setHovered(isHovered ? row.key : undefined)}
            />
          ))}
          <div style={{ height: `${below}px` }} />
        </div>
      </div>
      {width === 'wide' && <NodeColumn nodes={nodes} used={used} pointed={pointed} />}
    </div>
  );
}

function NodeColumn(props: {
  readonly nodes: NumberedNodes;
  readonly used: ReadonlySet<string>;
  readonly pointed: string;
}) {
  const { place } = usePage();
  const { nodes, used, pointed } = props;
  return (
    <section class="nodes" aria-label="nodes">
      <h2>Nodes</h2>
      <ol>
        {nodes.map(({ node, number }) => (
          <NodeBox key={node.key} {...{ node, number, place }} isUsed={used.has(node.name)} />
        ))}
      </ol>
      {pointed !== '' && <NodeLines key={pointed} />}
    </section>
  );
}

function NodeBox(props: { readonly node: NodeRow; readonly number: number; readonly isUsed: boolean }) {
  const { place } = usePage();
  const { node, number, isUsed } = props;
  const selection = `node/${node.name}`;
  const isSelected = place.query['sel'] === selection;
  const classes = ['node', isUsed ? 'used' : '', isSelected ? 'selected' : '', node.isReady ? '' : 'lost'];
  return (
    <li class={classes.join(' ')} data-node={number}>
      <span class="node-mark" aria-hidden="true">
        {number}
      </span>
      <div>
        <PlaceLink to={withQuery(place, { sel: isSelected ? undefined : selection })} class="title">
          <Text>{node.name}</Text>
        </PlaceLink>
        <p class="muted">
          <NodeState node={node} />
        </p>
        <p class="muted">{counted(node.pods, 'Pod')}</p>
      </div>
    </li>
  );
}

/** Lines from the Pods of what is pointed at to their nodes: of all Pods they would hide everything. */
function NodeLines() {
  const drawing = useRef<SVGSVGElement>(null);
  const [paths, setPaths] = useState<readonly string[]>([]);
  useLayoutEffect(() => {
    const svg = drawing.current;
    const map = svg?.closest('.map-picture');
    if (svg === null || map === null || map === undefined) return;
    const origin = svg.getBoundingClientRect();
    const marks = map.querySelectorAll(
      '.map-row:hover .member .node-mark, .map-row.selected .member .node-mark, .member.selected .node-mark',
    );
    const found = [...marks].flatMap((mark) => {
      const node = map.querySelector(`[data-node="${/\d+/.exec(mark.textContent)?.[0] ?? ''}"]`);
      if (node === null) return [];
      const [a, b] = [mark.getBoundingClientRect(), node.getBoundingClientRect()];
      const [x, y, toX, toY] = [
        a.right - origin.left + 3,
        a.top + a.height / 2 - origin.top,
        b.left - origin.left,
        b.top + b.height / 2 - origin.top,
      ];
      const middle = (x + toX) / 2;
      return [`M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`];
    });
    if (found.join() !== paths.join()) setPaths(found);
  });
  return (
    <svg ref={drawing} class="node-lines" aria-hidden="true">
      {paths.map((path) => (
        <path key={path} class="line" d={path} />
      ))}
    </svg>
  );
}

/** The same as a table. */
function MapTable({ rows }: { readonly rows: readonly MapRow[] }) {
  return (
    <Table
      name="Services"
      rows={rows}
      columns={[
        { title: 'Service', class: 'wide', cell: ({ key }) => <ServiceLink of={key} /> },
        { title: 'Type', class: 'nowrap', cell: ({ service }) => service.type },
        {
          title: 'Addresses',
          class: 'code',
          cell: ({ service: { clusterIP, external } }) => (
            <Text>{[clusterIP, external].filter((text) => text !== '<none>').join(', ')}</Text>
          ),
        },
        {
          title: 'Ports',
          class: 'code',
          cell: ({ service }) => <Text>{service.ports.replaceAll(',', ', ')}</Text>,
        },
        {
          title: 'Ready',
          class: 'short',
          cell: ({ service: { endpoints } }) =>
            endpoints === undefined ? '–' : `${endpoints.ready}/${endpoints.total}`,
        },
        {
          title: 'Problem',
          cell: ({ service: { trouble } }) => (trouble === undefined ? '' : <Reason word={trouble.reason} />),
        },
        { title: 'Slices', class: 'short', cell: ({ slices }) => slices.length },
        {
          title: 'Pods',
          class: 'wide pods',
          cell: ({ members }) =>
            members.length > mostMembers ? (
              stateCounts(members)
            ) : (
              <ul>
                {members.map((member) => (
                  <li key={member.key}>
                    <Sign {...podSigns[stateOf(member)]} />
                    <span class="hidden">{stateOf(member)} </span>
                    <Text>{`${member.key.split('/').at(-1) ?? ''} ${member.address} ${member.node ?? 'on no node'}`}</Text>
                  </li>
                ))}
              </ul>
            ),
        },
      ]}
    />
  );
}
