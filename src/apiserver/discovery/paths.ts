import type { Handler } from '../http/exchange.ts';
import type { DiscoveredResources } from './discovered-resource.ts';
import { groupResources } from './documents.ts';
import type { RemoteGroupVersion } from './remote-group-version.ts';

/** Serves `/`: the paths there are (apiserver `server/routes/index.go`). */
export function pathsHandler(
  served: DiscoveredResources,
  remoteVersions: () => readonly RemoteGroupVersion[],
  more: readonly string[],
): Handler {
  return async (_request, reply) => {
    await Promise.resolve();
    const paths = new Set<string>(['/api', '/apis', ...more]);
    for (const group of groupResources(served(), remoteVersions()).values()) {
      const root = group.name === '' ? '/api' : `/apis/${group.name}`;
      paths.add(root);
      for (const version of group.versions.keys()) paths.add(`${root}/${version}`);
    }
    reply.send(200, 'application/json', JSON.stringify({ paths: [...paths].sort() }, null, 2));
  };
}
