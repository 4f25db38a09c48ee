import { StatusError } from '../../objects/status.ts';
import type { ResourceHandler } from '../rest/handlers.ts';

/** Answers for subresources that need a running container: there is none behind a simulated Pod. */
export const noContainers: ResourceHandler = (_core, resource, { info }) => {
  throw new StatusError(
    501,
    'NotImplemented',
    `${resource.definition.plural}/${info.subresource}: Pods are simulated here, there is no container behind ${JSON.stringify(info.name)}`,
    { details: { name: info.name, kind: resource.definition.plural } },
  );
};
