/** Tables of flowcontrol.apiserver.k8s.io. */
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

const none = '<none>';

/** The order in which FlowSchemas are matched with requests. */
function byPrecedence(a: KubeObject, b: KubeObject): number {
  const difference = numberAt(a, 'spec', 'matchingPrecedence') - numberAt(b, 'spec', 'matchingPrecedence');
  return difference || (nameOf(a) < nameOf(b) ? -1 : 1);
}

export const flowSchemasTable: TableConverter = {
  columns: [
    nameColumn,
    column('PriorityLevel', 'The priority level of the requests.'),
    column('MatchingPrecedence', 'Lower values are matched first.'),
    column('DistinguisherMethod', 'How requests are divided into flows.'),
    ageColumn,
    column('MissingPL', 'Whether the priority level does not exist.'),
  ],
  order: byPrecedence,
  cells: (object, now) => {
    const dangling = listAt(object, 'status', 'conditions').find(
      (each) => textAt(each, 'type') === 'Dangling',
    );
    return [
      nameOf(object),
      textAt(object, 'spec', 'priorityLevelConfiguration', 'name'),
      numberAt(object, 'spec', 'matchingPrecedence'),
      at(object, 'spec', 'distinguisherMethod') === undefined
        ? none
        : textAt(object, 'spec', 'distinguisherMethod', 'type'),
      ageOf(object, now),
      dangling === undefined ? '?' : textAt(dangling, 'status'),
    ];
  },
};

export const priorityLevelConfigurationsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Type', 'Whether its requests are limited.'),
    column('NominalConcurrencyShares', 'Its share of the concurrent requests.'),
    column('Queues', 'The number of queues.'),
    column('HandSize', 'The number of queues of which a flow uses the shortest.'),
    column('QueueLengthLimit', 'The limit of requests in a queue.'),
    ageColumn,
  ],
  cells: (object, now) => {
    const limited = at(object, 'spec', 'limited');
    const queuing = at(limited, 'limitResponse', 'queuing');
    const queuingCell = (member: string) => (queuing === undefined ? none : numberAt(queuing, member));
    return [
      nameOf(object),
      textAt(object, 'spec', 'type'),
      limited === undefined ? none : numberAt(limited, 'nominalConcurrencyShares'),
      queuingCell('queues'),
      queuingCell('handSize'),
      queuingCell('queueLengthLimit'),
      ageOf(object, now),
    ];
  },
};
