import {
  labelsText,
  type TableConverter,
  ageOf,
  column,
  nameColumn,
  nameOf,
  wideColumn,
  selectorText,
  namedTable,
} from './table.ts';
import { at, listAt, numberAt, textAt, recordAt } from '../../objects/json.ts';
import { joinHostPort } from '../../objects/address.ts';

/**
 * - Tables of Services and their endpoints (`pkg/printers/internalversion/printers.go`).
 * - Tables of networking.k8s.io.
 * - The table of Routes (openshift-apiserver `route/printers/internalversion`).
 */

/** Further entries are counted. */
const shownEntries = 3;

export const servicesTable = namedTable(
  [
    column('Type', 'How the Service is exposed: ClusterIP, NodePort, LoadBalancer or ExternalName.'),
    column('Cluster-IP', 'The virtual address inside the cluster, None for a headless Service.'),
    column('External-IP', 'Addresses or names by which the Service is reached from outside.'),
    column('Port(s)', 'The ports of the Service, with their node ports.'),
    wideColumn('Selector', 'Labels of the Pods that serve it.'),
  ],
  (object) => {
    const [clusterIP] = listAt(object, 'spec', 'clusterIPs');
    const ports = listAt(object, 'spec', 'ports').map(portText).join(',');
    return [
      textAt(object, 'spec', 'type'),
      typeof clusterIP === 'string' ? clusterIP : '<none>',
      externalIP(object),
      ports === '' ? '<none>' : ports,
      labelsText(at(object, 'spec', 'selector')),
    ];
  },
);

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
function ingressPoints(object: unknown): string[] {
  const points = listAt(object, 'status', 'loadBalancer', 'ingress').map((ingress) => {
    const ip = textAt(ingress, 'ip');
    return ip === '' ? textAt(ingress, 'hostname') : ip;
  });
  return [...new Set(points.filter((point) => point !== ''))].sort();
}

export const endpointsTable = namedTable(
  [column('Endpoints', 'Addresses and ports that are ready.')],
  (object) => {
    const subsets = listAt(object, 'subsets');
    const all = subsets.flatMap((subset) => {
      const addresses = listAt(subset, 'addresses').map((address) => textAt(address, 'ip'));
      const ports = listAt(subset, 'ports').map((port) => numberAt(port, 'port'));
      if (ports.length === 0) return addresses;
      return ports.flatMap((port) => addresses.map((address) => joinHostPort(address, port)));
    });
    const text = subsets.length === 0 ? '<none>' : withMore(all);
    return [text];
  },
);

export const endpointSlicesTable = namedTable(
  [
    column('AddressType', 'IPv4, IPv6 or FQDN.'),
    column('Ports', 'Port numbers that every endpoint of the slice serves.'),
    column('Endpoints', 'Addresses of the endpoints.'),
  ],
  (object) => {
    const ports = listAt(object, 'ports').map((port) => {
      const number = at(port, 'port');
      if (typeof number === 'number') return String(number);
      const name = at(port, 'name');
      return typeof name === 'string' ? name : '*';
    });
    const addresses = listAt(object, 'endpoints').flatMap((endpoint) =>
      listAt(endpoint, 'addresses').map(String),
    );
    return [textAt(object, 'addressType'), withMore(ports) || '<unset>', withMore(addresses) || '<unset>'];
  },
);

/** The first entries, and the number of the others. */
function withMore(entries: readonly string[]): string {
  const first = entries.slice(0, shownEntries).join(',');
  return entries.length > shownEntries ? `${first} + ${entries.length - shownEntries} more...` : first;
}

/** Rules after so many hosts are counted. */
const shownHosts = 3;

export const ingressesTable = namedTable(
  [
    column('Class', 'The IngressClass that serves it.'),
    column('Hosts', 'Host names of its rules.'),
    column('Address', 'The address of its load balancer.'),
    column('Ports', 'Ports that are open: 443 is added by TLS.'),
  ],
  (object) => {
    return [
      textAt(object, 'spec', 'ingressClassName') || '<none>',
      hosts(listAt(object, 'spec', 'rules')),
      ingressPoints(object).join(','),
      listAt(object, 'spec', 'tls').length === 0 ? '80' : '80, 443',
    ];
  },
);

/** The hosts of the rules. As in kube-apiserver, the count of more rules has those without a host too. */
function hosts(rules: readonly unknown[]): string {
  const list: string[] = [];
  let more = false;
  for (const rule of rules) {
    const host = textAt(rule, 'host');
    if (list.length === shownHosts) more = true;
    else if (host !== '') list.push(host);
  }
  if (list.length === 0) return '*';
  const text = list.join(',');
  return more ? `${text} + ${rules.length - shownHosts} more...` : text;
}

export const ingressClassesTable = namedTable(
  [
    column('Controller', 'The controller that serves Ingresses of this class.'),
    column('Parameters', 'An object with further settings.'),
  ],
  (object) => {
    const parameters = recordAt(object, 'spec', 'parameters');
    const group = textAt(parameters, 'apiGroup');
    const kind = textAt(parameters, 'kind');
    const reference = `${group === '' ? kind : `${kind}.${group}`}/${textAt(parameters, 'name')}`;
    return [textAt(object, 'spec', 'controller'), kind === '' ? '<none>' : reference];
  },
);

export const networkPoliciesTable = namedTable(
  [column('Pod-Selector', 'The Pods that the policy applies to.')],
  (object) => [selectorText(at(object, 'spec', 'podSelector'))],
);

export const serviceCidrsTable = namedTable(
  [column('CIDRs', 'The ranges that cluster addresses are taken from.')],
  (object) => [listAt(object, 'spec', 'cidrs').join(',')],
);

/** Two columns and three cells: kube-apiserver sends the age without a column for it. */
export const ipAddressesTable: TableConverter = {
  columns: [nameColumn, column('ParentRef', 'The object that the address is allocated to.')],
  cells(object, now) {
    const parent = recordAt(object, 'spec', 'parentRef');
    const group = textAt(parent, 'group');
    const resource = textAt(parent, 'resource').toLowerCase();
    const namespace = textAt(parent, 'namespace');
    const path = [
      group === '' ? resource : `${resource}.${group.toLowerCase()}`,
      ...(namespace === '' ? [] : [namespace]),
      textAt(parent, 'name'),
    ];
    return [nameOf(object), resource === '' ? '<none>' : path.join('/'), ageOf(object, now)];
  },
};

export const routesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Host/Port', 'The host that is served, or the reason why not.'),
    column('Path', 'The prefix of the paths.'),
    column('Services', 'Primary and alternate route backends.'),
    column('Port', 'The port of the Services.'),
    column('Termination', 'Indicates termination type.'),
    column('Wildcard', 'The wildcard policy.'),
  ],
  cells: (object) => [
    nameOf(object),
    host(object),
    textAt(object, 'spec', 'path'),
    services(object),
    port(at(object, 'spec', 'port', 'targetPort')),
    termination(object),
    textAt(object, 'spec', 'wildcardPolicy'),
  ],
};

/** The host that a router admitted, that of the spec before others; else the reason of the last rejection. */
function host(route: unknown): string {
  const own = textAt(route, 'spec', 'host');
  const routers = listAt(route, 'status', 'ingress').map((entry) => ({
    host: textAt(entry, 'host'),
    condition: listAt(entry, 'conditions').find((condition) => textAt(condition, 'type') === 'Admitted'),
  }));
  if (routers.length === 0) return own;
  const admitted = routers.filter(({ condition }) => textAt(condition, 'status') === 'True');
  const refused = routers.filter(({ condition }) => textAt(condition, 'status') === 'False');
  const matching = admitted.findIndex((router) => router.host === own);
  const shown = admitted.at(matching)?.host ?? own;
  if (refused.length > 0) {
    return admitted.length === 0
      ? textAt(refused.at(-1)?.condition, 'reason')
      : `${shown} ... ${refused.length} rejected`;
  }
  if (admitted.length === 0) return 'Pending';
  return admitted.length === 1 ? shown : `${shown} ... ${admitted.length - 1} more`;
}

/** The Services, each with its share of the requests where there are several. */
function services(route: unknown): string {
  const backends = [recordAt(route, 'spec', 'to'), ...listAt(route, 'spec', 'alternateBackends')];
  const weights = backends.map((backend) => numberAt(backend, 'weight'));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return backends
    .map((backend, i) => {
      const name = textAt(backend, 'name');
      if (typeof at(backend, 'weight') !== 'number' || (backends.length === 1 && total !== 0)) return name;
      const share = total === 0 ? 0 : Math.trunc(((weights[i] ?? 0) * 100) / total);
      return `${name}(${share}%)`;
    })
    .join(',');
}

function port(target: unknown): string {
  return typeof target === 'string' || typeof target === 'number' ? String(target) : '<all>';
}

function termination(route: unknown): string {
  const kind = textAt(route, 'spec', 'tls', 'termination');
  const insecure = textAt(route, 'spec', 'tls', 'insecureEdgeTerminationPolicy');
  if (insecure === '') return kind;
  return `${kind === '' ? 'default' : kind}/${insecure}`;
}
