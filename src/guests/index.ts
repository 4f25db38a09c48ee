/**
 * Images of Kubernetes' end-to-end tests (test/images) as programs of ours. The table loads none of them: a program is
 * loaded when the first container of its image starts.
 */
import type { ProgramImage, ProgramImages } from '../emulation/program.ts';
import { entries } from '../paths.ts';
import { corednsProgram } from './agnhost/context.ts';

const registry = 'registry.k8s.io/e2e-test-images';

const agnhost: ProgramImage = {
  entrypoint: '/agnhost',
  commands: ['/agnhost', 'agnhost', '/agnhost-2', corednsProgram],
  start: async (argv, container) => {
    const { startAgnhost } = await import('./agnhost/start.ts');
    return await startAgnhost(argv, container);
  },
};

const apachePage = '<html><body><h1>It works!</h1></body></html>\n';
const nginxPage =
  '<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n';

/** Images that are servers of their own. A command of theirs is a program of the machine. */
const servers: readonly (readonly [name: string, pages?: ProgramImage['pages']])[] = [
  ['httpd', { path: '/usr/local/apache2/htdocs', index: apachePage }],
  ['nginx', { path: '/usr/share/nginx/html', index: nginxPage }],
  ['nautilus'],
  ['kitten'],
  ['sample-apiserver'],
];

/** The images of Kubernetes' tests that run as programs of ours. */
export const guestImages: ProgramImages = {
  byName: new Map([['agnhost', agnhost]]),
  byRepository: new Map<string, ProgramImage>([
    [`${registry}/agnhost`, agnhost],
    ['k8s.gcr.io/e2e-test-images/agnhost', agnhost],
    ...servers.map(([name, pages]): [string, ProgramImage] => [
      `${registry}/${name}`,
      {
        ...{ entrypoint: name, commands: [], pages },
        start: async (argv, container) => {
          const { startTestImage } = await import('./test-images/start.ts');
          return await startTestImage(argv, container, pages?.path);
        },
      },
    ]),
  ]),
  executables: new Map([['/agnhost', entries.agnhost]]),
};
