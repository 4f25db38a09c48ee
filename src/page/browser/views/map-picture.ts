import { type Columns, columnsDot, columnsMermaid, columnsSvg } from '../../../view/pictures/columns.ts';
import type { Picture } from '../parts/export-menu.tsx';
import { type MapRow, type numberedNodes, stateOf } from './map-rows.ts';

/** The Map to take along: all of its rows, also those that are not in sight. */
export function mapPictureOf(rows: readonly MapRow[], nodes: ReturnType<typeof numberedNodes>): Picture {
  const columns = columnsOf(rows, nodes);
  return { svg: columnsSvg(columns), mermaid: columnsMermaid(columns), dot: columnsDot(columns) };
}

function columnsOf(rows: readonly MapRow[], nodes: ReturnType<typeof numberedNodes>): Columns {
  // A Pod may be behind several Services.
  const members = new Map(rows.flatMap(({ members: of }) => of).map((member) => [member.key, member]));
  const used = new Set([...members.values()].flatMap(({ node }) => node ?? []));
  return {
    columns: [
      {
        title: 'Services',
        boxes: rows.map(({ key, service: { type, clusterIP, external, ports, endpoints, trouble } }) => ({
          id: `service ${key}`,
          texts: [
            `${key}${endpoints === undefined ? '' : `  ${endpoints.ready}/${endpoints.total}`}`,
            [type, clusterIP, external, ports].filter((text) => text !== '<none>').join('  '),
            ...(trouble === undefined ? [] : [trouble.reason]),
          ],
          verdict: trouble === undefined ? 'pass' : 'deny',
        })),
      },
      {
        title: 'Slices',
        boxes: rows.flatMap(({ slices }) =>
          slices.map(({ key, name, addressType, ports }) => ({
            ...({
              id: `slice ${key}`,
              texts: [name, [addressType, ...ports].join('  ')],
              verdict: 'pass',
            } as const),
          })),
        ),
      },
      {
        title: 'Pods',
        boxes: [...members.values()].map((member) => ({
          id: `member ${member.key}`,
          texts: [
            member.key,
            [member.address, stateOf(member)].filter((text) => text !== member.key).join('  '),
          ],
          verdict: member.isReady ? 'allow' : 'deny',
        })),
      },
      {
        title: 'Nodes',
        boxes: nodes
          .filter(({ node }) => used.has(node.name))
          .map(({ node }) => ({
            id: `node ${node.name}`,
            texts: [node.name, node.isReady ? 'Ready' : 'NotReady'],
            verdict: node.isReady ? 'pass' : 'deny',
          })),
      },
    ],
    lines: [
      ...rows.flatMap(({ key, slices }) =>
        slices.map((slice) => ({ from: `service ${key}`, to: `slice ${slice.key}` })),
      ),
      ...rows.flatMap(({ slices, members: of }) =>
        of.flatMap((member) =>
          member.slices.map((index) => ({
            from: `slice ${slices[index]?.key ?? ''}`,
            to: `member ${member.key}`,
          })),
        ),
      ),
      ...[...members.values()].map(({ key, node }) => ({ from: `member ${key}`, to: `node ${node ?? ''}` })),
    ],
  };
}
