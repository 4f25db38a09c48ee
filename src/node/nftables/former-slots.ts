import type {
  PlannedEndpoint,
  ServicePortPlan,
  TrafficPolicy,
} from '../../network/forwarding/forwarding-plan.ts';
import { type ElementsByText, elementText } from './difference.ts';
import { type Element, isEndpointValue, isMarkValue, type KeyPart } from './elements.ts';
import { endpointMarksMap, endpointsMap } from './pick-chain.ts';
import { destinationElementKey } from './port-elements.ts';
import type { FormerSlots } from './programmed.ts';
import type { SetName } from './sets.ts';

/** Finds the slots of Service ports in the elements of a table, so that a restart need not change them. */
export function formerSlots(actual: ElementsByText): FormerSlots {
  const find = (set: SetName, key: readonly KeyPart[]): Element | undefined =>
    actual.get(elementText({ set, key }));

  const slots = (port: ServicePortPlan, to: TrafficPolicy): readonly PlannedEndpoint[] => {
    for (const destination of port.destinations) {
      const { by, key } = destinationElementKey(port, destination);
      const endpoints: PlannedEndpoint[] = [];
      for (;;) {
        let mark = endpoints.length;
        if (port.affinitySeconds !== undefined) {
          const marked = find(endpointMarksMap(by, to), [...key, mark])?.value;
          if (!isMarkValue(marked)) break;
          [mark] = marked;
        }
        const endpoint = find(endpointsMap(by, to), [...key, mark])?.value;
        if (!isEndpointValue(endpoint)) break;
        endpoints.push({ address: endpoint[0], port: endpoint[1], isLocal: false });
      }
      if (endpoints.length > 0) return endpoints;
    }
    return [];
  };
  return (port) => ({ cluster: slots(port, 'Cluster'), local: slots(port, 'Local') });
}
