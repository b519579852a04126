// A player with slider and button for each film of a page of 'linmdp watch'. All frames are in the page; nothing is fetched.
"use strict";
(() => {
  for (const film of JSON.parse(document.getElementById("frames").textContent)) {
    const player = document.querySelector("template").content.cloneNode(true);
    const part = (tag) => player.querySelector(tag);
    const [image, slider, button] = ["img", "input", "button"].map(part);
    part("h2").textContent = image.alt = slider.ariaLabel = film.title;
    part("p").textContent = film.words;
    slider.max = film.frames.length - 1;
    document.querySelector("main").append(player);
    let timer = 0;
    const show = () => (image.src = film.frames[Number(slider.value)]);
    const stop = () => {
      clearInterval(timer);
      timer = 0;
      button.textContent = "play";
    };
    const next = () => {
      if (slider.value === slider.max) return stop();
      slider.value = String(Number(slider.value) + 1);
      show();
    };
    slider.addEventListener("input", () => (stop(), show()));
    button.addEventListener("click", () => {
      if (timer) return stop();
      if (slider.value === slider.max) slider.value = "0";
      show();
      button.textContent = "stop";
      timer = setInterval(next, film.wait);
    });
    show();
  }
})();
