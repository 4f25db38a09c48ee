/** Which test images there are, apart from their programs: commands that only read their names load no server. */

/** Images by what they are. */
export const testImages = ['httpd', 'nginx', 'nautilus', 'kitten', 'sample-apiserver'] as const;
export type TestImage = (typeof testImages)[number];

/** The folder of a web server's pages, which its container may change; undefined for others. */
export function webRootOf(image: TestImage): { readonly path: string; readonly index: string } | undefined {
  if (image === 'httpd') return { path: '/usr/local/apache2/htdocs', index: apachePage };
  return image === 'nginx' ? { path: '/usr/share/nginx/html', index: nginxPage } : undefined;
}

const apachePage = '<html><body><h1>It works!</h1></body></html>\n';
const nginxPage =
  '<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n';
