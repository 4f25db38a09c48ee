/** Tables of networking.k8s.io. */
import { selectorText } from './label-text.ts';
import { at, listAt, recordAt, textAt } from '../../objects/read.ts';
import { ingressPoints } from './services.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

/** Rules after so many hosts are counted. */
const shownHosts = 3;

export const ingressesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Class', 'The IngressClass that serves it.'),
    column('Hosts', 'Host names of its rules.'),
    column('Address', 'The address of its load balancer.'),
    column('Ports', 'Ports that are open: 443 is added by TLS.'),
    ageColumn,
  ],
  cells(object, now) {
    return [
      nameOf(object),
      textAt(object, 'spec', 'ingressClassName') || '<none>',
      hosts(listAt(object, 'spec', 'rules')),
      ingressPoints(object).join(','),
      listAt(object, 'spec', 'tls').length === 0 ? '80' : '80, 443',
      ageOf(object, now),
    ];
  },
};

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

export const ingressClassesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Controller', 'The controller that serves Ingresses of this class.'),
    column('Parameters', 'An object with further settings.'),
    ageColumn,
  ],
  cells(object, now) {
    const parameters = recordAt(object, 'spec', 'parameters');
    const group = textAt(parameters, 'apiGroup');
    const kind = textAt(parameters, 'kind');
    const reference = `${group === '' ? kind : `${kind}.${group}`}/${textAt(parameters, 'name')}`;
    return [
      nameOf(object),
      textAt(object, 'spec', 'controller'),
      kind === '' ? '<none>' : reference,
      ageOf(object, now),
    ];
  },
};

export const networkPoliciesTable: TableConverter = {
  columns: [nameColumn, column('Pod-Selector', 'The Pods that the policy applies to.'), ageColumn],
  cells: (object, now) => [
    nameOf(object),
    selectorText(at(object, 'spec', 'podSelector')),
    ageOf(object, now),
  ],
};

export const serviceCidrsTable: TableConverter = {
  columns: [nameColumn, column('CIDRs', 'The ranges that cluster addresses are taken from.'), ageColumn],
  cells: (object, now) => [nameOf(object), listAt(object, 'spec', 'cidrs').join(','), ageOf(object, now)],
};

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
