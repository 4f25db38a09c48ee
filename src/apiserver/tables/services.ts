/** Tables of Services and their endpoints (`pkg/printers/internalversion/printers.go`). */
import { labelsText } from './label-text.ts';
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf, wideColumn } from './table.ts';
import { joinHostPort } from '../../objects/address.ts';

/** Further entries are counted. */
const shownEntries = 3;

export const servicesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Type', 'How the Service is exposed: ClusterIP, NodePort, LoadBalancer or ExternalName.'),
    column('Cluster-IP', 'The virtual address inside the cluster, None for a headless Service.'),
    column('External-IP', 'Addresses or names by which the Service is reached from outside.'),
    column('Port(s)', 'The ports of the Service, with their node ports.'),
    ageColumn,
    wideColumn('Selector', 'Labels of the Pods that serve it.'),
  ],
  cells(object, now) {
    const [clusterIP] = listAt(object, 'spec', 'clusterIPs');
    const ports = listAt(object, 'spec', 'ports').map(portText).join(',');
    return [
      nameOf(object),
      textAt(object, 'spec', 'type'),
      typeof clusterIP === 'string' ? clusterIP : '<none>',
      externalIP(object),
      ports === '' ? '<none>' : ports,
      ageOf(object, now),
      labelsText(at(object, 'spec', 'selector')),
    ];
  },
};

function portText(port: unknown): string {
  const nodePort = numberAt(port, 'nodePort');
  const number = numberAt(port, 'port');
  return `${nodePort > 0 ? `${number}:${nodePort}` : number}/${textAt(port, 'protocol')}`;
}

function externalIP(object: unknown): string {
  const externalIPs = listAt(object, 'spec', 'externalIPs').map(String);
  switch (textAt(object, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return externalIPs.length === 0 ? '<none>' : externalIPs.join(',');
    case 'LoadBalancer': {
      const all = [...ingressPoints(object), ...externalIPs];
      return all.length === 0 ? '<pending>' : all.join(',');
    }
    case 'ExternalName':
      return textAt(object, 'spec', 'externalName');
    default:
      return '<unknown>';
  }
}

/** The addresses, or else the names, in `status.loadBalancer.ingress`, sorted and without repeats. */
export function ingressPoints(object: unknown): string[] {
  const points = listAt(object, 'status', 'loadBalancer', 'ingress').map((ingress) => {
    const ip = textAt(ingress, 'ip');
    return ip === '' ? textAt(ingress, 'hostname') : ip;
  });
  return [...new Set(points.filter((point) => point !== ''))].sort();
}

export const endpointsTable: TableConverter = {
  columns: [nameColumn, column('Endpoints', 'Addresses and ports that are ready.'), ageColumn],
  cells(object, now) {
    const subsets = listAt(object, 'subsets');
    const all = subsets.flatMap((subset) => {
      const addresses = listAt(subset, 'addresses').map((address) => textAt(address, 'ip'));
      const ports = listAt(subset, 'ports').map((port) => numberAt(port, 'port'));
      if (ports.length === 0) return addresses;
      return ports.flatMap((port) => addresses.map((address) => joinHostPort(address, port)));
    });
    const text = subsets.length === 0 ? '<none>' : withMore(all);
    return [nameOf(object), text, ageOf(object, now)];
  },
};

export const endpointSlicesTable: TableConverter = {
  columns: [
    nameColumn,
    column('AddressType', 'IPv4, IPv6 or FQDN.'),
    column('Ports', 'Port numbers that every endpoint of the slice serves.'),
    column('Endpoints', 'Addresses of the endpoints.'),
    ageColumn,
  ],
  cells(object, now) {
    const ports = listAt(object, 'ports').map((port) => {
      const number = at(port, 'port');
      if (typeof number === 'number') return String(number);
      const name = at(port, 'name');
      return typeof name === 'string' ? name : '*';
    });
    const addresses = listAt(object, 'endpoints').flatMap((endpoint) =>
      listAt(endpoint, 'addresses').map(String),
    );
    return [
      nameOf(object),
      textAt(object, 'addressType'),
      withMore(ports) || '<unset>',
      withMore(addresses) || '<unset>',
      ageOf(object, now),
    ];
  },
};

/** The first entries, and the number of the others. */
function withMore(entries: readonly string[]): string {
  const first = entries.slice(0, shownEntries).join(',');
  return entries.length > shownEntries ? `${first} + ${entries.length - shownEntries} more...` : first;
}
