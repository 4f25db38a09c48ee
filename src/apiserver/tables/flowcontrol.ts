/** Tables of the kinds that sort requests. */
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

const none = '<none>';

/** The order in which requests are compared with them. */
function byPrecedence(a: KubeObject, b: KubeObject): number {
  const difference = numberAt(a, 'spec', 'matchingPrecedence') - numberAt(b, 'spec', 'matchingPrecedence');
  return difference || (nameOf(a) < nameOf(b) ? -1 : 1);
}

export const flowSchemasTable: TableConverter = {
  columns: [
    nameColumn,
    column('PriorityLevel', 'The priority level of the requests.'),
    column('MatchingPrecedence', 'Less is asked first.'),
    column('DistinguisherMethod', 'What the flows of a schema differ in.'),
    ageColumn,
    column('MissingPL', 'Whether the priority level is missing or broken.'),
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
    column('NominalConcurrencyShares', 'Its share of the requests that run at once.'),
    column('Queues', 'How many queues it has.'),
    column('HandSize', 'From how many queues a flow gets the shortest.'),
    column('QueueLengthLimit', 'How many requests may wait in a queue.'),
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
