import { isNotFound } from '../../client/errors.ts';
import { customResourceDefinitions, gatewayClasses } from '../../client/resources.ts';
import { bundleVersionAnnotation, gatewayClassStatus } from '../../network/gateway/status.ts';
import { gatewayController, gatewayGroup } from '../../network/gateway/plan.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { KeyLoop } from '../../runtime/key-loop.ts';

/** The definition by whose version a class is supported: those of one installation have the same. */
const definition = `gateways.${gatewayGroup}`;

/** Says of each GatewayClass of ours whether it is served, and what we claim of the API. */
export function gatewayClassLoop(context: ControllerContext): KeyLoop {
  return new KeyLoop(context, 'gateway_classes', { workers: 1 }, (loop) => {
    const classes = loop.cache(gatewayClasses);
    loop.on(classes, ({ object }) => [object.metadata.name ?? '']);
    return async (name, signal) => {
      const found = classes.cache.get(name);
      if (found?.spec.controllerName !== gatewayController) return undefined;
      const { clients, clock } = loop.context;
      const { metadata } = await clients.for(customResourceDefinitions).get('', definition, { signal });
      const version = metadata.annotations?.[bundleVersionAnnotation];
      const status = gatewayClassStatus(found, version, clock.now());
      if (jsonEqual(found.status ?? {}, status)) return undefined;
      const { resourceVersion } = found.metadata;
      try {
        await clients
          .for(gatewayClasses)
          .mergePatch('', name, { metadata: { resourceVersion }, status }, { subresource: 'status', signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    };
  });
}
